"""The pages of db/runbook, as they are pasted: each does its work, leaves its event and names what to watch."""

import asyncio
import re
from uuid import UUID

import pytest
from autopost_cli.embedded.places import postgres_programs
from autopost_cli.schema import schema_files
from autopost_contracts.events import Action
from db.support.builders import Tenant
from db.support.operators import dead, refused

FOLDER = schema_files.folder() / "runbook"
PAGES = sorted(FOLDER.glob("*.sql"))


class Psql:
    def __init__(self, url: str, tenant: Tenant) -> None:
        self.url = url
        self.tenant = tenant

    async def paste(self, number: int, **variables: object) -> str:
        """What psql prints; it must have ended well."""
        given = {"workspace_id": self.tenant.workspace, "operator": "ann", "reason": 'it\'s "odd"', **variables}
        [page] = [page for page in PAGES if page.name.startswith(f"{number:02}_")]
        program = await asyncio.create_subprocess_exec(
            *(postgres_programs(18, None) / "psql", "--no-psqlrc", "--quiet", self.url, "-f", page),
            *(word for name, value in given.items() for word in ("-v", f"{name}={value}")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await program.communicate()
        assert program.returncode == 0, printed.decode()
        return printed.decode()


@pytest.fixture
def psql(database, tenant) -> Psql:
    return Psql(database.url, tenant)


def listed(*deliveries: UUID) -> str:
    return "{" + ",".join(map(str, deliveries)) + "}"


def test_the_pages_are_numbered_without_a_gap():
    assert [int(page.name[:2]) for page in PAGES] == list(range(1, len(PAGES) + 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_names_the_events_to_watch(page):
    [watch] = re.findall(r"-- Watch afterwards: ((?:.*\n)(?:--  .*\n)*)", page.read_text())
    named = {word for word in re.findall(r"[a-z_]+", watch) if "_" in word} - {"manual_stuck_release"}

    assert named <= set(Action)
    assert named or "nothing was changed" in watch


async def test_1_and_2_show_the_queue_and_what_broke(psql, tenant, operator):
    await dead(tenant, await tenant.channel())
    await operator.pause(await tenant.channel(title="resting"))
    before = await tenant.events()

    assert '"dead": 1' in await psql.paste(1)
    assert "resting" in await psql.paste(1)
    assert "dead_letter" in await psql.paste(2)
    assert await tenant.events() == before


async def test_3_brings_the_dead_back(psql, tenant):
    one, other = await dead(tenant, await tenant.channel(), 2)

    printed = await psql.paste(3, delivery_ids=listed(one))

    assert "requeued" in printed
    assert [(await tenant.delivery(each))["status"] for each in (one, other)] == ["retry", "dead"]
    assert (await tenant.claim_one())["delivery_id"] == one
    assert (await tenant.history(one))[-2:] == ["manual_requeue", "send_attempt"]


async def test_4_brings_back_what_was_refused(psql, tenant):
    delivery = await refused(tenant, await tenant.channel())

    await psql.paste(4, delivery_ids=listed(delivery), attempts=2)

    row = await tenant.delivery(delivery)
    assert (row["status"], row["max_attempts"]) == ("retry", 3)
    assert (await tenant.claim_one())["delivery_id"] == delivery


async def test_5_and_6_pause_a_channel_and_open_it(psql, tenant):
    channel = await tenant.channel()
    [delivery] = await tenant.backlog(channel, 1)

    assert "paused" in await psql.paste(5, channel_id=channel, pause_for="2 hours")
    assert await tenant.claim() == []
    assert "enabled" in await psql.paste(6, channel_id=channel)

    assert (await tenant.claim_one())["delivery_id"] == delivery
    assert [event["what"] for event in await tenant.events("channel_paused", "channel_enabled")] == [
        "channel_paused",
        "channel_enabled",
    ]


async def test_7_and_8_switch_a_group_off_and_on(psql, tenant):
    for channel in await tenant.channels(3):
        await tenant.backlog(channel, 1)

    await psql.paste(7, rate_group="bot")
    assert await tenant.claim() == []
    await psql.paste(8, rate_group="bot")

    assert len(await tenant.claim()) == 3


async def test_9_gives_a_channel_another_credential(psql, tenant):
    channel = await tenant.channel()

    assert "rotated" in await psql.paste(9, channel_id=channel, new_auth_ref="second")

    state = await tenant.state(channel)
    assert (state["auth_ref"], state["rate_group"]) == ("second", "bot")
    assert len(await tenant.events("auth_rotated")) == 1


async def test_10_releases_what_no_lease_covers(psql, tenant):
    channel = await tenant.channel(max_parallel=1)
    stuck, waiting = await tenant.backlog(channel, 2)
    await tenant.claim_one()

    assert "released" not in await psql.paste(10)
    assert "released" in await psql.paste(10, force="true")

    assert (await tenant.claim_one())["delivery_id"] == waiting
    assert (await tenant.delivery(stuck))["status"] == "retry"
    assert (await tenant.history(stuck))[-1] == "manual_requeue"


async def test_a_page_that_fails_says_so_and_changes_nothing(psql, tenant):
    [delivery] = await dead(tenant, await tenant.channel())

    with pytest.raises(AssertionError, match="operator and reason must not be empty"):
        await psql.paste(3, delivery_ids=listed(delivery), reason="")

    assert (await tenant.delivery(delivery))["status"] == "dead"
