"""Take in what a source brought: what is new of it, a chunk in a transaction, the cursor with it.

A chunk that the database refuses or finds too long is halved, down to the one item that is to blame; that one is told
and passed over, and the source goes on.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import asyncpg
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Profile
from autopost_contracts.subjects import Topology
from autopost_runtime.jetstream import Bus
from msgspec import Struct

from autopost_ingest.compile import Profiles, compile_for
from autopost_ingest.normalize import Normalized, Refused
from autopost_ingest.pull.endings import Interrupted, PullFailed
from autopost_ingest.pull.gateway import Claim, PullGateway, Taken
from autopost_ingest.pull.items import MOST_WORDS, Item, is_before
from autopost_ingest.pull.posts import (
    PassedOver,
    TooLarge,
    TooOld,
    item_refused,
    normalized_words,
    post_to_enqueue,
    post_to_stage,
    request_of,
)
from autopost_ingest.pull.sources import Options

ROUNDS = 4
"""How often a chunk is offered when channels change meanwhile or others hold what it needs."""
CHUNK_WORDS = 1024 * 1024
"""What a chunk may say: it is written as one document, and nothing else happens meanwhile."""
BEGUN = "begun"
"""In the cursor of a source that is not to post all that it has: whether it was read to its end once."""
_HELD_BY_OTHERS = frozenset({"40001", "40P01", "55P03"})
_ITS_OWN_FAULT = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.ProgramLimitExceededError)


class Fresh(Struct, frozen=True, kw_only=True):
    """An item that this source has not brought yet."""

    place: int
    """Among all that was read."""
    behind: int
    """How many were read after it."""
    ref: str
    item: Item


class Limits(Struct, frozen=True, kw_only=True):
    chunk: int = 100
    lease: timedelta = timedelta(seconds=180)
    audit_deduped: bool = False
    with_media: bool = True


class _Post(Struct, frozen=True, kw_only=True):
    ref: str
    request: PostRequest
    normalized: Normalized | None = None
    problem: Refused | None = None


class Bringer:
    """For one pull of one source."""

    def __init__(
        self,
        claim: Claim,
        options: Options,
        gateway: PullGateway,
        profiles: Profiles,
        wake: "Wake",
        limits: Limits,
    ) -> None:
        self._claim = claim
        self._options = options
        self._gateway = gateway
        self._profiles = profiles
        self._wake = wake
        self._limits = limits
        self._begins = options.first != "all" and _begins(claim.cursor_json)

    async def fresh(self, items: Sequence[Item]) -> list[Fresh]:
        """In the same order; of twins both, so that the second can be told."""
        last = len(items) - 1
        named = [Fresh(place=place, behind=last - place, ref=item.ref, item=item) for place, item in enumerate(items)]
        if not named:
            return []
        unseen = await self._gateway.unseen_pull_items(self._claim, [each.ref for each in named])
        return [each for each in named if each.ref in unseen]

    async def take(
        self,
        fresh: Sequence[Fresh],
        cursor: dict[str, Any],
        *,
        last: bool,
        marks: Sequence[Any] = (),
        newest: bool = True,
    ) -> None:
        """``cursor`` is for the end of it; ``marks``, one for each item read, say where it is on the way.

        ``newest``: behind these there are no newer ones. ``last``: the source has been read to its end.
        """
        chunks = list(_chunks(fresh, self._limits.chunk)) or [[]]
        for chunk, following in pairwise(chunks):
            before = _cursor_before(following[0].place, marks)
            await self._take(chunk, before, last=False, newest=newest)
        await self._take(chunks[-1], cursor, last=last, newest=newest)

    async def _take(self, chunk: Sequence[Fresh], cursor: dict[str, Any], *, last: bool, newest: bool) -> None:
        posts = []
        for each in chunk:
            posts.append(self._post(each, newest=newest))
            await asyncio.sleep(0)  # an item may be long, and requests are waiting
        if self._begins:
            cursor = cursor | {BEGUN: last}
        await self._offer(posts, cursor, last=last)

    def _post(self, fresh: Fresh, *, newest: bool) -> _Post:
        most = self._options.first if newest and isinstance(self._options.first, int) else 0
        request = request_of(fresh.item, self._options, with_media=self._limits.with_media)
        if self._begins and fresh.behind >= most:
            return _Post(ref=fresh.ref, request=request, problem=PassedOver("first", "it was there before"))
        return _post(fresh, self._options, request)

    async def _offer(self, posts: list[_Post], cursor: dict[str, Any], *, last: bool) -> None:
        try:
            await self._settle(posts, cursor, last=last)
        except (*_ITS_OWN_FAULT, asyncpg.QueryCanceledError) as exc:
            half = len(posts) // 2
            if half:
                await self._offer(posts[:half], {}, last=False)
                await self._offer(posts[half:], cursor, last=last)
            elif posts and isinstance(exc, _ITS_OWN_FAULT):
                await self._call([], [item_refused(posts[0].ref, exc)], cursor, last=last)
            else:
                raise

    async def _settle(self, posts: Sequence[_Post], cursor: dict[str, Any], *, last: bool) -> None:
        workspace = self._claim.workspace_id
        profiles = self._profiles.known(workspace)
        refused = [item_refused(post.ref, post.problem) for post in posts if post.problem]
        for turn in range(1, ROUNDS + 1):
            try:
                taken = await self._call(await self._compiled(posts, profiles), refused, cursor, last=last)
            except asyncpg.PostgresError as exc:
                if exc.sqlstate not in _HELD_BY_OTHERS or turn == ROUNDS:
                    raise
                continue
            if taken.verdict != "missing_profiles":
                return
            self._profiles.learn(workspace, taken.missing_profiles)
            profiles += taken.missing_profiles
        raise PullFailed("channels_changing", "channels are being changed")

    async def _compiled(self, posts: Sequence[_Post], profiles: tuple[Profile, ...]) -> list[dict[str, Any]]:
        source_id = self._claim.source_id
        compiled = []
        for post in posts:
            if post.problem:
                continue
            if post.normalized is None or post.request.media:
                compiled.append(post_to_stage(post.request, post.ref, source_id))
                continue
            renderings = compile_for(post.normalized, profiles)
            compiled.append(post_to_enqueue(post.request, post.normalized, post.ref, source_id, renderings))
            await asyncio.sleep(0)  # a chunk is a lot of work, and requests are waiting
        return compiled

    async def _call(
        self, posts: list[dict[str, Any]], refused: list[dict[str, Any]], cursor: dict[str, Any], *, last: bool
    ) -> Taken:
        taken = await self._gateway.ingest_pull_chunk(
            self._claim,
            posts,
            refused,
            cursor,
            last=last,
            lease=self._limits.lease,
            audit_deduped=self._limits.audit_deduped,
        )
        if taken.verdict in ("stale", "stopped"):
            raise Interrupted(taken.verdict)
        self._wake(self._claim, taken)
        return taken


class Wake:
    """Tells whoever goes on with it: the dispatchers, or ``staged``, who fetches media."""

    def __init__(self, bus: Bus, topology: Topology, staged: asyncio.Event | None) -> None:
        self._bus = bus
        self._topology = topology
        self._staged = staged

    def __call__(self, claim: Claim, taken: Taken) -> None:
        if taken.enqueued:
            self._bus.wake(self._topology.wakeup_dispatch(claim.workspace_id))
        if taken.staged and self._staged is not None:
            self._staged.set()


def _chunks(fresh: Sequence[Fresh], most: int) -> Iterator[Sequence[Fresh]]:
    """Each for one transaction: so many items, fewer where they are long."""
    first, words = 0, 0
    for place, each in enumerate(fresh):
        length = len(each.item.summary) + len(each.item.content)
        if place > first and (place - first == most or words + length > CHUNK_WORDS):
            yield fresh[first:place]
            first, words = place, 0
        words += length
    if fresh:
        yield fresh[first:]


def _begins(cursor: dict[str, Any]) -> bool:
    """Never read to its end: a source that has a cursor but does not say so was read before it was asked to say."""
    return not cursor.get(BEGUN, bool(cursor))


def _post(fresh: Fresh, options: Options, request: PostRequest) -> _Post:
    if fresh.item.is_too_large or len((request.text or "").encode(errors="replace")) > MOST_WORDS:
        reason = f"it says more than {MOST_WORDS} bytes"
        return _Post(ref=fresh.ref, request=request, problem=TooLarge("text", reason))
    if options.since and is_before(fresh.item, options.since):
        return _Post(ref=fresh.ref, request=request, problem=TooOld("date", f"before {options.since.isoformat()}"))
    try:
        return _Post(ref=fresh.ref, request=request, normalized=normalized_words(request))
    except Refused as exc:
        return _Post(ref=fresh.ref, request=request, problem=exc)


def _cursor_before(place: int, marks: Sequence[Any]) -> dict[str, Any]:
    """As far as everything with that mark is taken in: what comes next may have the mark of what came before."""
    if not marks:
        return {}
    for mark in reversed(marks[:place]):
        if mark != marks[place]:
            return {"last_seen": mark}
    return {}
