"""What is brought is made into posts a little at a time, and written in pieces that are not too long."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from autopost_contracts.ids import EndpointId, RunId, WorkspaceId
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Profile
from autopost_ingest.errors import AtCapacity
from autopost_ingest.posts.compile import KnownProfiles
from autopost_ingest.posts.normalize import Normalized
from autopost_ingest.posts.offload import Offload, Rendering
from autopost_ingest.pull.endings import PullFailed
from autopost_ingest.pull.gateway import ChunkResult, PullClaim, PullGateway
from autopost_ingest.pull.import_items import ImportLimits, ItemImporter, NewItem
from autopost_ingest.pull.items import MOST_WORDS, Item, bounded
from autopost_ingest.pull.source_config import RssSource

CLAIM = PullClaim(
    workspace_id=WorkspaceId(uuid4()),
    source_id="blog",
    endpoint_id=EndpointId(uuid4()),
    kind="rss",
    config_json={},
    cursor_json={},
    lease_token=uuid4(),
    run_id=RunId(uuid4()),
)


class Noting(PullGateway):
    """Notes each chunk, and how often others had their turn before it."""

    def __init__(self) -> None:
        self.turns = 0
        self.chunks: list[tuple[int, int]] = []
        self.refused: list[dict[str, Any]] = []
        self.batches: list[set[str]] = []
        self.fault: Exception | None = None

    async def others(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)

    async def ingest_pull_chunk(
        self, claim: PullClaim, posts: Any, refused: Any, *_: Any, **options: Any
    ) -> ChunkResult:
        self.chunks.append((len(posts), self.turns))
        self.refused += refused
        self.batches.append({post["batch_id"] for post in posts})
        if self.fault:
            fault, self.fault = self.fault, None
            raise fault
        return ChunkResult(verdict="taken")


async def brought(*items: Item, profiles: int = 0, fault: Exception | None = None) -> Noting:
    gateway, known = Noting(), KnownProfiles()
    gateway.fault = fault
    made = tuple(Profile(profile_hash=str(number), platform="telegram") for number in range(profiles))
    known.learn(CLAIM.workspace_id, made)
    source = RssSource(url="https://a.example/", include=("title", "summary", "content"), first="all")
    importer = ItemImporter(CLAIM, source, gateway, known, lambda *_: None, ImportLimits())  # type: ignore[arg-type]
    others = asyncio.create_task(gateway.others())
    fresh = [NewItem(place=place, behind=0, ref=item.ref, item=item) for place, item in enumerate(map(bounded, items))]
    await importer.take(fresh, {}, last=True)
    others.cancel()
    with suppress(asyncio.CancelledError):
        await others
    return gateway


async def test_others_have_their_turn_after_every_item() -> None:
    gateway = await brought(*(Item(id=str(number), title="t") for number in range(50)))

    [(posts, turns)] = gateway.chunks
    assert posts == 50
    assert turns >= 100  # once it is normalised and once it is compiled


async def test_long_items_are_written_in_shorter_chunks() -> None:
    gateway = await brought(*(Item(id=str(number), summary="x" * 60_000) for number in range(40)))

    assert [posts for posts, _ in gateway.chunks] == [17, 17, 6]


async def test_items_for_many_profiles_are_written_in_shorter_chunks() -> None:
    items = [Item(id=str(number), summary="x" * 30_000) for number in range(10)]

    gateway = await brought(*items, profiles=10)

    assert [posts for posts, _ in gateway.chunks] == [3, 3, 3, 1]


async def test_each_chunk_is_a_batch_of_its_own() -> None:
    gateway = await brought(*(Item(id=str(number), summary="x" * 60_000) for number in range(40)))

    assert [len(batch) for batch in gateway.batches] == [1, 1, 1]
    assert len(set.union(*gateway.batches)) == 3


@pytest.mark.parametrize(
    ("fault", "calls"), [(asyncpg.SerializationError("again"), 2), (asyncpg.DataError("in two halves"), 3)]
)
async def test_a_chunk_that_is_offered_again_is_the_same_batch(fault: Exception, calls: int) -> None:
    gateway = await brought(*(Item(id=str(number), title="t") for number in range(4)), fault=fault)

    assert len(gateway.batches) == calls
    assert len(set.union(*gateway.batches)) == 1


async def test_an_item_says_no_more_than_a_post_whatever_is_included_of_it() -> None:
    most = "🦊" * (MOST_WORDS // 4 - 1)
    gateway = await brought(
        Item(id="1", summary=most),
        Item(id="2", summary=most, content=most),
        Item(id="3", summary=most, content=most + "y" * 5),
        Item(id="4", title="t", tags=("x" * MOST_WORDS,)),
        Item(title=most + "y" * 5),
    )

    assert sum(posts for posts, _ in gateway.chunks) == 1
    assert [each["code"] for each in gateway.refused] == ["too_large"] * 4
    assert [each["source_ref"] for each in gateway.refused][:3] == ["2", "3", "4"]


async def test_an_item_with_text_that_no_reader_can_use_is_set_aside_and_the_others_are_posted() -> None:
    gateway = await brought(
        Item(id="1", summary="one"),
        Item(id="2", summary="a" + "\u0301" * 31),
        Item(id="3", summary="x" * 65_537),
        Item(id="4", summary="four"),
    )

    assert sum(posts for posts, _ in gateway.chunks) == 2
    assert [(each["source_ref"], each["code"]) for each in gateway.refused] == [
        ("2", "unprocessable"),
        ("3", "unprocessable"),
    ]
    assert "combining marks" in gateway.refused[0]["message"]


class NoNormalizing(Offload):
    async def normalize(self, workspace: WorkspaceId, request: PostRequest) -> Normalized:
        raise AtCapacity


class NoRendering(Offload):
    async def render(
        self, workspace: WorkspaceId, normalized: Normalized, profiles: tuple[Profile, ...]
    ) -> list[Rendering]:
        raise AtCapacity


@pytest.mark.parametrize("offload", [NoNormalizing(), NoRendering()], ids=lambda each: type(each).__name__)
async def test_a_service_at_capacity_costs_no_item(offload: Offload) -> None:
    gateway = Noting()
    source = RssSource(url="https://a.example/", include=("title",), first="all")
    importer = ItemImporter(CLAIM, source, gateway, KnownProfiles(), lambda *_: None, ImportLimits(), offload)  # type: ignore[arg-type]

    with pytest.raises(PullFailed, match="at capacity"):
        await importer.take([NewItem(place=0, behind=0, ref="1", item=bounded(Item(id="1", title="t")))], {}, last=True)

    assert (gateway.chunks, gateway.refused) == ([], [])


class FailsOnTwo(Offload):
    async def normalize(self, workspace: WorkspaceId, request: PostRequest) -> Normalized:
        if "cannot be normalised" in (request.text or ""):
            raise KeyError("a bug")
        return await super().normalize(workspace, request)

    async def render(
        self, workspace: WorkspaceId, normalized: Normalized, profiles: tuple[Profile, ...]
    ) -> list[Rendering]:
        if "cannot be compiled" in normalized.content.text:
            raise KeyError("a bug")
        return await super().render(workspace, normalized, profiles)


async def test_an_item_that_our_code_fails_on_is_told_and_the_others_are_taken_in() -> None:
    gateway = Noting()
    source = RssSource(url="https://a.example/", include=("title",), first="all")
    importer = ItemImporter(CLAIM, source, gateway, KnownProfiles(), lambda *_: None, ImportLimits(), FailsOnTwo())  # type: ignore[arg-type]
    items = [Item(id=title, title=title) for title in ("one", "cannot be normalised", "two", "cannot be compiled")]

    await importer.take(
        [NewItem(place=place, behind=0, ref=item.ref, item=bounded(item)) for place, item in enumerate(items)],
        {},
        last=True,
    )

    assert [posts for posts, _ in gateway.chunks] == [2]
    assert [refused["code"] for refused in gateway.refused] == ["internal", "internal"]
