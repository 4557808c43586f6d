"""What an operator gives the dispatchers to do they hear of at once; without NATS the command is none the worse."""

import nats
import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.subjects import Topology
from autopost_runtime.nats.streams import ensure_streams
from db.support.builders import Tenant
from db.support.operators import dead
from harness.autopost_command import Autopost
from harness.databases import Database

SIGNED = ("--operator", "ann", "--reason", "mended")


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await Tenant.create(database.pool)


async def wakeups(nats_url: str, topology: Topology) -> dict[str, int]:
    """Subjects in the stream; each holds its last wakeup alone."""
    async with await nats.connect(nats_url) as client:
        info = await client.jetstream().stream_info(topology.stream("WAKEUPS"), subjects_filter=">")
        return dict(info.state.subjects or {})


@pytest.mark.parametrize("verb", ["requeue", "filter", "resume", "enable", "workspace"])
async def test_the_dispatchers_are_woken_once_it_is_done(
    database: Database, tenant: Tenant, nats_url: str, nats_namespace: str, verb: str
) -> None:
    topology = Topology(nats_namespace)
    await ensure_streams(nats_url, topology)
    autopost = Autopost(database.url, AUTOPOST_NATS_URL=nats_url, AUTOPOST_NATS_NAMESPACE=nats_namespace)
    channel = await tenant.channel()
    [delivery] = await dead(tenant, channel)
    words: dict[str, tuple[object, ...]] = {
        "requeue": ("queue", "requeue", delivery),
        "filter": ("queue", "requeue", "--all", "--yes"),
        "resume": ("channel", "resume", channel),
        "enable": ("channel", "enable", channel),
        "workspace": ("workspace", "resume"),
    }
    if verb == "workspace":
        await tenant.db.execute("UPDATE workspaces SET status = 'paused' WHERE workspace_id = $1", tenant.workspace)
    await tenant.set_channel(channel, "enabled = false" if verb == "enable" else "paused_until = 'infinity'")

    looked = await autopost("channel", "list")
    rehearsed = await autopost(*words[verb], *SIGNED, "--dry-run")
    before = await wakeups(nats_url, topology)
    done = await autopost(*words[verb], *SIGNED)

    assert (looked.code, rehearsed.code, before) == (0, 0, {})
    assert done.code == 0
    assert await wakeups(nats_url, topology) == {topology.wakeup_dispatch(WorkspaceId(tenant.workspace)): 1}


@pytest.mark.parametrize("nats_url", ["off", "nats://127.0.0.1:1", "nats://", "no address", ""])
async def test_without_nats_it_is_done_all_the_same(database: Database, tenant: Tenant, nats_url: str) -> None:
    [delivery] = await dead(tenant, await tenant.channel())
    autopost = Autopost(database.url, AUTOPOST_NATS_URL=nats_url)

    ran = await autopost("queue", "requeue", delivery, *SIGNED)

    assert (ran.code, ran.err) == (0, "")
    assert (await tenant.delivery(delivery))["status"] == "retry"


async def test_a_server_without_streams_is_no_trouble(
    database: Database, tenant: Tenant, nats_url: str, nats_namespace: str
) -> None:
    [delivery] = await dead(tenant, await tenant.channel())
    autopost = Autopost(database.url, AUTOPOST_NATS_URL=nats_url, AUTOPOST_NATS_NAMESPACE=nats_namespace)

    ran = await autopost("queue", "requeue", delivery, *SIGNED)

    assert (ran.code, ran.err) == (0, "")
