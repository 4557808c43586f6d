"""Every function asks for the workspace wherever it names a table of tenants, as far as reading its text can tell."""

import re
from collections.abc import Iterator

from autopost_cli.schema import schema_files
from harness.databases import Database

TENANTS = """
SELECT c.relname
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
  AND c.relname NOT IN ('workspaces', 'status_tokens')
"""
NAMED = re.compile(r"\b(?:FROM|JOIN|UPDATE|USING)\s+(?:ONLY\s+)?(\w+)(?:\s+(?:AS\s+)?(\w+))?")
NO_ALIAS = {"SET", "WHERE", "ON", "USING", "JOIN", "LEFT", "CROSS", "ORDER", "LIMIT", "GROUP", "FOR", "UNION"}

WHOLE_INSTALLATION = {
    # one log, one stream: the relay and the guards walk the events of everybody
    *("checkpoint_deliveries", "open_sweep", "open_window", "reconcile_events", "relay_lag", "relay_passed"),
    *("skip_to_event", "window_by_seq", "window_by_xid"),
    # retention and collection go by age
    *(
        "mark_media_for_deletion",
        "mark_orphan_objects",
        "retain_bot_actions",
        "retain_bot_inbox",
        "retain_bot_state",
        "retain_commands",
    ),
    *("retain_deliveries", "retain_messages", "retain_pull_receipts", "retain_receipts", "retain_staged_posts"),
    # a gauge of the whole queue
    "queue_depth",
    # targets of alerts belong to the installation
    *("abandon_notices", "count_alerts", "evaluate_alerts", "status_report", "send_snapshot"),
    *("condition_provider_waits", "condition_set_aside", "condition_bot_inbox", "condition_publications_late"),
    # metrics of all of them
    *("circuit_counts", "count_bot_actions", "queue_by_workspace"),
    *("count_publications", "count_unpublished_commands"),
    # workers serve whoever is due
    *("claim_pull_sources", "due_workspaces", "lease_staged_posts"),
    # any dispatcher asks the platforms of everybody
    *("end_lost_trials", "take_probes"),
    # any replica relays the commands of everybody, and drops what is too late
    *("drop_missed_publications", "unpublished_commands", "give_up_owner_notices"),
    # a bot belongs to one workspace, so the others are asked; once, for all channels, when the rule itself changes
    *("bind_credential", "template_profile", "learn_bot"),
}


async def test_a_table_of_tenants_is_never_read_without_its_workspace(database: Database) -> None:
    tables = {row["relname"] for row in await database.pool.fetch(TENANTS)}

    found = {
        file.name.rpartition("/")[2].removesuffix(".sql")
        for file in schema_files.objects()
        if file.name.startswith("functions/") and any(unfiltered(file.text, tables))
    }

    assert found == WHOLE_INSTALLATION


def test_the_reading_notices_a_missing_workspace() -> None:
    asked = "SELECT 1 FROM channels c WHERE c.workspace_id = p_workspace_id AND c.channel_id = p_channel_id"

    assert not list(unfiltered(asked, {"channels"}))
    for wrong in (
        "SELECT c.workspace_id FROM channels c WHERE c.channel_id = p_channel_id",
        "UPDATE channels SET enabled = false WHERE channel_id = p_channel_id",
        f"{asked}; SELECT 1 FROM channels c WHERE c.channel_id = p_channel_id",
        f"{asked} AND EXISTS (SELECT 1 FROM channels o WHERE o.rate_group = c.rate_group)",
    ):
        assert list(unfiltered(wrong, {"channels"})) == ["channels"]


def unfiltered(text: str, tables: set[str]) -> Iterator[str]:
    """The tables that are named in a query which does not compare their workspace."""
    text = re.sub(r"'(?:[^']|'')*'", "''", re.sub(r"--[^\n]*", "", text))
    for named in NAMED.finditer(text):
        table, alias = named[1], named[2]
        if table in tables:
            alias = table if not alias or alias.upper() in NO_ALIAS else alias
            if not any(_compares(query, alias, table) for query in _queries(text, named.start())):
                yield table


def _compares(query: str, alias: str, table: str) -> bool:
    """A row that is held by its key may be found again by its place."""
    ways = rf"\b{alias}\.workspace_id (?:=|IN\b)|= {alias}\.workspace_id\b|\({alias}\.workspace_id[^()]*\) [=>]"
    bare = r"|(?<![.\w])workspace_id =" if alias == table else ""
    return re.search(rf"{ways}|USING \(workspace_id|\b{alias}\.ctid ={bare}", query) is not None


def _queries(text: str, at: int) -> Iterator[str]:
    """The query that this place is in, and the one around it where OFFSET 0 keeps a condition outside on purpose."""
    start, end = _edge(text, at, -1), _edge(text, at, 1)
    query = text[start + 1 : end]
    yield query
    if "OFFSET 0" in query and start >= 0 and text[start] == "(":
        yield from _queries(text, start)


def _edge(text: str, at: int, step: int) -> int:
    """Where the parentheses around this place open or close, or its statement begins or ends."""
    into, out = ("(", ")") if step > 0 else (")", "(")
    depth, place = 0, at if step > 0 else at - 1
    while 0 <= place < len(text):
        if text[place] == into:
            depth += 1
        elif text[place] == out or text[place] == ";":
            if depth == 0:
                return place
            depth -= text[place] == out
        place += step
    return place
