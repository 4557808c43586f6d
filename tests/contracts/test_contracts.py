"""What services say to each other is pinned: names, hashes and the closed lists."""

from uuid import UUID

import msgspec
from autopost_contracts.events import Action
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import Button, PostRequest
from autopost_contracts.plan import Plan, TextPart
from autopost_contracts.subjects import Topology
from harness.databases import Database

WORKSPACE = WorkspaceId(UUID("0de00000-0000-4000-8000-000000000001"))


def test_a_plan_hash_says_what_is_sent_and_nothing_else() -> None:
    part = TextPart(text="Привет", markup="html", buttons=((Button("Go", "https://example.org/"),),))
    plan = Plan(version=1, platform="telegram", parts=(part,))

    assert plan.digest() == "cf04c3bff991677e3bded34b842f72703db7151fc3660beb5001fc91e624b144"
    assert plan.digest() == Plan(version=1, platform="telegram", parts=(part,)).digest()
    assert plan.digest() != Plan(version=1, platform="max", parts=(part,)).digest()


def test_a_plan_survives_the_database() -> None:
    plan = Plan(version=1, platform="max", parts=(TextPart(text="a", silent=True),), notes=("n",))

    assert msgspec.convert(msgspec.to_builtins(plan), Plan) == plan


async def test_the_database_knows_exactly_the_actions_we_know(database: Database) -> None:
    rows = await database.pool.fetch("SELECT unnest(enum_range(NULL::event_action))::text AS action")

    assert [row["action"] for row in rows] == [str(action) for action in Action]


def test_subjects_are_those_that_tools_rely_on() -> None:
    topology = Topology()

    assert topology.wakeup_dispatch(WORKSPACE) == f"autopost.wakeup.dispatch.{WORKSPACE}"
    assert topology.wakeup_bot(WORKSPACE) == f"autopost.wakeup.bot.{WORKSPACE}"
    assert topology.audit(WORKSPACE, Action.SENT) == f"autopost.audit.{WORKSPACE}.sent"
    assert topology.commands == "delivery.commands"
    assert [stream.name for stream in topology.streams] == ["WAKEUPS", "AUDIT", "COMMANDS"]


def test_two_namespaces_share_no_stream_and_no_subject() -> None:
    one, other = Topology("one"), Topology("other")

    assert not {stream.name for stream in one.streams} & {stream.name for stream in other.streams}
    assert not {s for stream in one.streams for s in stream.subjects} & {
        s for stream in other.streams for s in stream.subjects
    }


def test_a_post_may_hint_at_a_workspace_and_nothing_unknown() -> None:
    assert msgspec.json.decode(b'{"text": "a", "workspace_id": "x"}', type=PostRequest).workspace_id == "x"
