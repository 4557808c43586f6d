"""`autopost bot log | why | unmatched`: what customers asked, and what the bot made of it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Any

import click
import msgspec
from autopost_bot.engine.normal_form import normal_form
from autopost_bot.engine.read_update import read_update
from autopost_bot.engine.ruleset import Ruleset, load_ruleset
from autopost_bot.engine.turn import Conversation, Update
from msgspec.structs import replace

from autopost_cli.bot.explain import why_lines
from autopost_cli.bot.gateway import bot_gateway
from autopost_cli.operate.gateway import Row
from autopost_cli.operate.operate import CommonOptions, accessing, print_json, print_table, reading, run
from autopost_cli.operate.times import Moment

LOGGED = ("at", "chat", "text", "outcome", "rule", "state", "answer")
SINCE = click.option(
    "--since", type=Moment(), default="1d", show_default=True, help="A time, or a duration before now."
)
LIMIT = click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)


@click.command()
@click.option("--chat", help="The token of one chat, as events and `autopost bot chats` show it.")
@SINCE
@accessing
def log(options: CommonOptions, chat: str | None, since: datetime) -> None:
    """Print what customers wrote and what the bot answered. Records payload_accessed."""

    async def work() -> list[Row]:
        async with bot_gateway(options) as gateway:
            return [row async for row in gateway.turns(since, datetime.now(UTC), chat)]

    rows = run(work())
    if options.as_json:
        print_json({"turns": [_plain(row) for row in rows]})
    else:
        print_table([_logged(row) for row in rows], LOGGED)


@click.command()
@click.argument("mid")
@accessing
def why(options: CommonOptions, mid: str) -> None:
    """Explain what became of one message: the rule, the rules that came later, the states, the reply."""

    async def work() -> list[Row]:
        async with bot_gateway(options) as gateway:
            return await gateway.why(mid)

    rows = run(work())
    if not rows:
        raise click.ClickException(f"no update {mid!r}; --workspace may be another one, or retention has deleted it")
    if options.as_json:
        print_json({"updates": [{name: value for name, value in row.items() if name != "ruleset"} for row in rows]})
        return
    for row in rows:
        click.echo("\n".join(_explained(row)))


@click.command()
@SINCE
@LIMIT
@reading
def unmatched(options: CommonOptions, since: datetime, limit: int) -> None:
    """Print what customers write and no rule answers, with the rule that comes nearest. Numbers are masked."""

    async def work() -> tuple[list[Row], Ruleset]:
        async with bot_gateway(options) as gateway:
            return await gateway.unmatched(since, limit), (await gateway.rules()).ruleset

    rows, ruleset = run(work())
    shown = [{**row, "nearest": nearest(ruleset, row["text"])} for row in rows]
    if options.as_json:
        print_json({"unmatched": shown})
    else:
        print_table(shown, ("times", "chats", "text", "nearest", "last_at"))


def nearest(ruleset: Ruleset, text: str) -> str | None:
    """The rule and keyword whose letters are most like a word of the text; ``None`` if nothing is alike."""
    best = (0.6, "")
    words = normal_form(text).split(" ")
    for keyword in ruleset.keywords:
        for word in words:
            likeness = SequenceMatcher(None, keyword.letters, word[: len(keyword.letters) + 1]).ratio()
            if likeness > best[0]:
                best = (likeness, f"{ruleset.rules[keyword.rule].rule_id} ({keyword.written})")
    return best[1] or None


def _logged(row: Row) -> Row:
    meta = row["meta"]
    rule = f"{row['matched_rule_id']} v{row['rule_version']}" if row["matched_rule_id"] else None
    before, after = row["state_before"], row["state_after"]
    return {
        "at": row["logged_at"],
        "chat": row["chat"],
        "text": _short(row["message_text"]),
        "outcome": meta.get("outcome"),
        "rule": rule,
        "state": before if before == after else f"{before} → {after}",
        "answer": _short(row["response_preview"] or ""),
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


def _plain(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in ("place", "update")}


def _explained(row: Row) -> Iterator[str]:
    yield f"chat {row['chat']}, {row['kind']}, stored {row['at']:%Y-%m-%d %H:%M:%S} UTC"
    if row["ignored"] and row["log"] is None:
        yield f"nobody answers it: {row['ignored']}"
        return
    log = row["log"]
    if log is None:
        yield "waits to be answered: `autopost bot chats` shows what else waits"
        return
    yield f"outcome {log['meta']['outcome']}, state {log['state_before']} → {log['state_after']}"
    if row["ruleset"]["rules"] is not None:
        ruleset = load_ruleset(row["ruleset"]["rules"], row["ruleset"]["settings"])
        yield from (f"  {line}" for line in why_lines(ruleset, _decided(row), _decided_in(log)))
    yield _replied(row["reply"])


def _decided(row: Row) -> Update:
    """A press says the text of its button, which only the log has."""
    update = read_update("", row["kind"], row["update"], row["at"], row["provider_ts"])
    return replace(update, text=row["log"]["message_text"]) if update.kind == "press" else update


def _decided_in(log: Row) -> Conversation:
    begins_anew = log["meta"].get("expired") or log["meta"].get("state_unknown")
    return Conversation() if begins_anew else Conversation(state=log["state_before"])


def _replied(reply: dict[str, Any]) -> str:
    if reply["reply_id"] is None:
        return "no reply"
    end = "sent" if reply["sent_at"] else ("failed" if reply["failed_at"] else "waits")
    when = reply["sent_at"] or reply["failed_at"] or reply["next_attempt_at"]
    error = f", last error {msgspec.json.encode(reply['last_error']).decode()}" if reply["last_error"] else ""
    return f"reply {reply['reply_id']}: {end} {when}, attempt {reply['attempt']}{error}"
