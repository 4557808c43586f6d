"""What is brought is made into posts a little at a time, and written in pieces that are not too long."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

from autopost_contracts.ids import EndpointId, RunId, WorkspaceId
from autopost_ingest.compile import Profiles
from autopost_ingest.pull.bring import Bringer, Fresh, Limits
from autopost_ingest.pull.gateway import Claim, PullGateway, Taken
from autopost_ingest.pull.items import MOST_WORDS, Item, bounded
from autopost_ingest.pull.sources import RssSource

CLAIM = Claim(
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

    async def others(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)

    async def ingest_pull_chunk(self, claim: Claim, posts: Any, refused: Any, *_: Any, **options: Any) -> Taken:
        self.chunks.append((len(posts), self.turns))
        self.refused += refused
        return Taken(verdict="taken")


async def brought(*items: Item) -> Noting:
    gateway = Noting()
    source = RssSource(url="https://a.example/", include=("title", "summary", "content"))
    bringer = Bringer(CLAIM, source, gateway, Profiles(), lambda *_: None, Limits())  # type: ignore[arg-type]
    others = asyncio.create_task(gateway.others())
    fresh = [Fresh(place=place, behind=0, ref=item.ref, item=item) for place, item in enumerate(map(bounded, items))]
    await bringer.take(fresh, {}, last=True)
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
    gateway = await brought(*(Item(id=str(number), summary="x" * 200_000) for number in range(12)))

    assert [posts for posts, _ in gateway.chunks] == [5, 5, 2]


async def test_an_item_says_no_more_than_a_post_whatever_is_included_of_it() -> None:
    most = "x" * (MOST_WORDS - 1)
    gateway = await brought(
        Item(id="1", summary=most),
        Item(id="2", summary=most, content=most),
        Item(id="3", summary=most, content=most + "yy"),
        Item(id="4", title="t", tags=("x" * MOST_WORDS,)),
        Item(title=most + "yy"),
    )

    assert sum(posts for posts, _ in gateway.chunks) == 1
    assert [each["code"] for each in gateway.refused] == ["too_large"] * 4
    assert [each["source_ref"] for each in gateway.refused][:3] == ["2", "3", "4"]
