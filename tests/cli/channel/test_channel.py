"""`autopost channel` and `autopost auth rotate`: channels by id, title or group, closed and opened by hand."""

from uuid import UUID, uuid4

import pytest
from db.support.builders import Tenant
from harness.autopost_command import Autopost
from harness.databases import Database
from harness.redaction_samples import TOKEN

SIGNED = ("--operator", "ann", "--reason", "resting")


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


@pytest.fixture
def autopost(database: Database, tenant: Tenant) -> Autopost:
    return Autopost(database.url)


async def paused(tenant: Tenant) -> set[str]:
    rows = await tenant.db.fetch("SELECT title FROM channels WHERE paused_until > now()")
    return {row["title"] for row in rows}


async def test_the_list_says_how_each_channel_stands_and_why(autopost: Autopost, tenant: Tenant) -> None:
    await tenant.backlog(await tenant.channel(title="News", rate_group="a"), 2)
    await tenant.channel(title="Sport", rate_group="b", auth_ref="second")
    await autopost("channel", "pause", "News", "--until-resumed", *SIGNED)

    text, listed = await autopost("channel", "list"), await autopost("channel", "list", "--json")
    narrowed = await autopost("channel", "list", "--rate-group", "b", "--platform", "telegram", "--json")

    assert [(row["title"], row["state"], row["waiting"]) for row in listed.json["channels"]] == [
        ("News", "paused", 2),
        ("Sport", "open", 0),
    ]
    assert "resting" in text.out
    assert [row["auth_ref"] for row in narrowed.json["channels"]] == ["second"]


@pytest.mark.parametrize("name", ["News Today", "news-today", "-100500", "id"])
async def test_a_channel_is_found_by_id_title_or_its_own_address(autopost: Autopost, tenant: Tenant, name: str) -> None:
    channel = await tenant.channel(title="News Today", target_id="-100500")
    await tenant.channel(title="Sport")

    ran = await autopost("channel", "pause", *SIGNED, "--json", "--", str(channel) if name == "id" else name)

    assert (ran.code, ran.json["results"][0]["verdict"]) == (0, "paused")
    assert await paused(tenant) == {"News Today"}


async def test_a_group_is_narrowed_to_one_platform(autopost: Autopost, tenant: Tenant) -> None:
    await tenant.channel(title="One", rate_group="main")
    await tenant.channel(title="Two", rate_group="main", platform="max")
    await tenant.channel(title="Three", rate_group="other")

    narrow = await autopost("channel", "pause", "--rate-group", "main", "--platform", "max", *SIGNED, "--json")
    after_narrow = await paused(tenant)
    wide = await autopost("channel", "pause", "--rate-group", "main", "--for", "2h", *SIGNED, "--json")

    [event, *_] = await tenant.events("channel_paused")
    assert (narrow.code, after_narrow) == (0, {"Two"})
    assert '"platform": "max"' in event["meta"]
    assert '"rate_group": "main"' in event["meta"]
    assert (wide.code, await paused(tenant)) == (0, {"One", "Two"})
    assert {row["title"] for row in wide.json["results"]} == {"One", "Two"}


@pytest.mark.parametrize("verb", ["pause", "resume", "disable", "enable"])
async def test_a_channel_in_the_wanted_state_is_unchanged(autopost: Autopost, tenant: Tenant, verb: str) -> None:
    channel = await tenant.channel(title="News", enabled=verb != "disable")
    if verb == "pause":
        await tenant.set_channel(channel, "paused_until = 'infinity'")

    ran = await autopost("channel", verb, "News", *SIGNED, "--json")

    assert (ran.code, ran.json["results"][0]["verdict"]) == (1, "unchanged")
    assert await tenant.count("events") == 0


async def test_resuming_what_is_switched_off_is_refused(autopost: Autopost, tenant: Tenant) -> None:
    channel = await tenant.channel(title="News")
    await tenant.set_channel(channel, "enabled = false, paused_until = 'infinity'")

    resumed, enabled = [await autopost("channel", verb, "News", *SIGNED, "--json") for verb in ("resume", "enable")]

    assert (resumed.code, resumed.json["results"][0]["verdict"]) == (1, "still_disabled")
    assert enabled.code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("pause",), 2, "give either one CHANNEL"),
        (("pause", "News", "--rate-group", "bot"), 2, "give either one CHANNEL"),
        (("pause", "Nobody"), 2, "channel 'Nobody' not found"),
        (("pause", str(uuid4())), 2, "not found"),
        (("pause", "Twice"), 2, "add --platform or use the id"),
        (("pause", "News", "--for", "0h"), 2, "is not a duration"),
        (("disable", "--rate-group", "nobody"), 1, "No channel has the rate group 'nobody'"),
    ],
)
async def test_an_ambiguous_channel_is_refused(
    autopost: Autopost, tenant: Tenant, words: tuple[str, ...], code: int, said: str
) -> None:
    await tenant.channel(title="News")
    await tenant.channel(title="Twice")
    await tenant.channel(title="Twice", platform="max")

    ran = await autopost("channel", *words, *SIGNED)

    assert ran.code == code
    assert said in " ".join((ran.err + ran.out).split())
    assert await tenant.count("events") == 0


async def test_the_platform_tells_two_of_one_title_apart(autopost: Autopost, tenant: Tenant) -> None:
    await tenant.channel(title="Twice")
    other = await tenant.channel(title="Twice", platform="max")

    ran = await autopost("channel", "disable", "Twice", "--platform", "max", *SIGNED, "--json")

    assert ran.json["results"][0]["channel_id"] == str(other)


async def test_a_credential_is_rotated_only_when_nothing_is_on_its_way(autopost: Autopost, tenant: Tenant) -> None:
    channel: UUID = await tenant.channel(title="News")
    await tenant.backlog(channel, 1)
    await tenant.claim_one()

    busy = await autopost("auth", "rotate", "News", "--auth-ref", "second", "--wait", "1s", *SIGNED, "--json")
    forced = await autopost("auth", "rotate", "News", "--auth-ref", "second", "--force", *SIGNED)

    assert (busy.code, busy.json["verdict"], busy.json["sending"]) == (1, "sending", 1)
    assert (forced.code, "bot -> second" in forced.out) == (0, True)
    assert "No secret is bound to second" in forced.err
    assert (await tenant.state(channel))["auth_ref"] == "second"


async def test_what_is_pasted_into_a_reason_is_told_to_nobody(
    autopost: Autopost, tenant: Tenant, database: Database
) -> None:
    await tenant.channel(title="News")
    reason = f'token {TOKEN} +7 900 123-45-67 bob@example.com {{"a": "{{\\"api_key\\":\\"hush\\"}}"}}'
    signed = ("--operator", "ann", "--reason", reason)

    await autopost("channel", "pause", "News", *signed)
    await autopost("auth", "rotate", "News", "--auth-ref", "other", *signed)
    places = ("--workspace", tenant.workspace, "--platform", "telegram", "--auth-ref", "other", "--env", "OTHER")
    await autopost("auth", "bind", *places, *signed)
    await autopost("auth", "status-token", "create", "--label", "wall", "--all-workspaces", *signed)
    await autopost("auth", "status-token", "revoke", "wall", *signed)

    told = [row[0] for row in await database.pool.fetch("SELECT meta ->> 'reason' FROM events")]
    kept = await database.pool.fetchrow("SELECT reason, revoked_reason FROM status_tokens")
    clean = 'token *** *** *** {"a": "{\\"api_key\\":\\"***\\"}"}'
    assert [*told, *(kept or ())] == [clean] * 7
    report = await database.pool.fetchval("SELECT status_report($1)::text", tenant.workspace)
    why = await autopost("why", await tenant.db.fetchval("SELECT channel_id FROM channels"))
    assert not any(secret in text for secret in (TOKEN, "123-45-67", "bob@", "hush") for text in (report, why.out))


async def test_every_part_explains_itself(autopost: Autopost) -> None:
    for words in (("channel", "list"), ("channel", "pause"), ("channel", "resume"), ("auth", "rotate")):
        ran = await autopost(*words, "--help")
        assert (ran.code, "--json" in ran.out) == (0, True)


async def test_check_names_settings_that_are_not_known_with_the_nearest_that_is(
    autopost: Autopost, tenant: Tenant
) -> None:
    known = {
        "overflow": "split",
        "parse_mode": "HTML",
        "message_thread_id": 7,
        "upload_policy": {"image": "url_allowed"},
    }
    await tenant.channel(title="Fine", settings=known)
    await tenant.channel(title="Wrong", settings={"overflw": "split", "parse_mode": "html", "silent": "yes", "zzz": 1})
    await tenant.channel(
        title="Media", platform="max", settings={"upload_policy": {"imge": "x", "video": "url_allowed"}}
    )

    text, told = await autopost("channel", "check"), await autopost("channel", "check", "--json")

    problems = {(row["title"], row["field"]): row["problem"] for row in told.json["problems"]}
    assert (text.code, told.code, told.json["channels"]) == (1, 1, 3)
    assert set(problems) == {
        ("Wrong", "settings.overflw"),
        ("Wrong", "settings.parse_mode"),
        ("Wrong", "settings.silent"),
        ("Wrong", "settings.zzz"),
        ("Media", "settings.upload_policy.imge"),
        ("Media", "settings.upload_policy.video"),
    }
    assert "did you mean `overflow`?" in problems["Wrong", "settings.overflw"]
    assert "did you mean `image`?" in problems["Media", "settings.upload_policy.imge"]
    assert "known: " in problems["Wrong", "settings.zzz"]
    assert "overflow" in text.out


async def test_check_reports_that_no_problems_were_found(autopost: Autopost, tenant: Tenant) -> None:
    await tenant.channel(title="Fine", settings={"overflow": "split"})

    ran = await autopost("channel", "check")

    assert (ran.code, ran.out.strip()) == (0, "No problems found in the settings of 1 channels.")


async def test_check_shows_no_secret_of_a_setting(autopost: Autopost, tenant: Tenant) -> None:
    await tenant.channel(title="x", settings={f"https://ann:hush@a.example/?token={TOKEN}": 1, "overflow": TOKEN})

    ran = await autopost("channel", "check", "--json")

    assert ran.code == 1
    assert not any(secret in ran.out for secret in ("hush", TOKEN))
