"""Parse, normalise and compile posts without blocking the event loop: small ones here, the others in worker processes.

The size limits keep the work in this process far below the 50 ms that may block the event loop; ordinary posts are
small. A post that takes a worker more than one second of CPU time is refused.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from time import perf_counter
from typing import Any, TypeVar

from autopost_adapters.planning.settings import UploadPolicy
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import Content, ParseMode, PostButton, PostRequest
from autopost_contracts.plan import Profile
from autopost_runtime.lifecycle.fair_slots import QueueFull
from autopost_runtime.workers.worker_process import TooComplex, WorkerProcesses
from msgspec import Raw

from autopost_ingest.errors import AtCapacity, InvalidPost
from autopost_ingest.posts.compile import compile_all, compile_for, rendering, under
from autopost_ingest.posts.normalize import Normalized, normalize
from autopost_ingest.posts.unclosed_marks import UnclosedMark, texts_of, unclosed_marks
from autopost_ingest.posts.worker_calls import (
    CompileCall,
    PlanMade,
    compile_call,
    normalize_call,
    plan_made,
    read_post_call,
    read_update_call,
    render_call,
)
from autopost_ingest.request.bot_update import BotUpdate, read_update
from autopost_ingest.request.post_request import read_post

SMALL_BODY = 64 * 1024
SMALL_VALUES = 4_000
"""Structural characters of a JSON body parsed in this process: at worst 3 µs each."""
SMALL_TEXT = 8_000
SMALL_MARKUP = 2_000
"""Characters compiled in this process: at worst 8 µs each, apart from markup characters."""
SMALL_SIGNS = 400
"""Markup characters compiled in this process: at worst 40 µs each; ordinary posts have fewer."""
SIGNS: Mapping[ParseMode | None, str] = {None: "", "HTML": "<&", "Markdown": "*_~`[<\\+^|>#&"}
SMALL_ADDRESSES = 4_000
"""Characters of URLs normalised in this process: at worst 2 µs each; a character of text takes at worst half of that
(a line break in Markdown), so twice as many are small."""
INLINE = timedelta(milliseconds=10).total_seconds()
"""After this time the remaining profiles of a post go to a worker."""
CALL_SIZE = 40_000
"""Characters times profiles per call; a template may render up to ``TEMPLATE_SIZE`` from any post."""
TEMPLATE_SIZE = 10_000
CALLS_WAITING = 1_000
"""Per workspace; above its limit of concurrent requests, so that limit applies first."""

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Rendering = dict[str, Any] | Raw


class Offload:
    """Without ``workers`` everything runs in this process, for tools that serve no requests.

    Raises ``InvalidPost`` when a post is too complex and ``AtCapacity`` when too many calls of the workspace wait.
    """

    def __init__(self, workers: WorkerProcesses | None = None, upload_policy: UploadPolicy | None = None) -> None:
        self._workers = workers
        self._policy: UploadPolicy = upload_policy or {}

    async def read_post(self, workspace: WorkspaceId, body: bytes) -> PostRequest:
        """Also raises ``HttpProblem``, like ``post_request.read_post``."""
        if self._workers is None or is_quickly_read(body):
            return read_post(body)
        return (await self._call(self._workers, read_post_call, body, workspace)).value()

    async def read_update(self, workspace: WorkspaceId, body: bytes) -> BotUpdate:
        """Also raises ``InvalidUpdate``, like ``bot_update.read_update``."""
        if self._workers is None or is_quickly_read(body):
            return read_update(body)
        return (await self._call(self._workers, read_update_call, body, workspace)).value().update()

    async def normalize(self, workspace: WorkspaceId, request: PostRequest) -> Normalized:
        if self._workers is None or _is_quickly_normalized(request):
            return normalize(request)
        return (await self._call(self._workers, normalize_call, request, workspace)).value()

    async def render(
        self, workspace: WorkspaceId, normalized: Normalized, profiles: tuple[Profile, ...]
    ) -> list[Rendering]:
        """The renderings for enqueueing, in any order."""
        profiles = self._under_policy(profiles)
        if self._workers is None:
            return [*compile_for(normalized, profiles)]
        done: list[Rendering] = []
        left = _done_here(normalized, profiles, lambda profile: done.append(rendering(normalized, profile)))
        for call in _calls(normalized, left):
            done += [Raw(made) for made in await self._call(self._workers, render_call, call, workspace)]
        return done

    async def compile(
        self, workspace: WorkspaceId, normalized: Normalized, profiles: tuple[Profile, ...]
    ) -> list[PlanMade]:
        profiles = self._under_policy(profiles)
        if self._workers is None:
            return [*_plans(normalized, *profiles)]
        done: list[PlanMade] = []
        left = _done_here(normalized, profiles, lambda profile: done.extend(_plans(normalized, profile)))
        for call in _calls(normalized, left):
            done += await self._call(self._workers, compile_call, call, workspace)
        return done

    async def unclosed_marks(self, workspace: WorkspaceId, content: Content) -> tuple[UnclosedMark, ...]:
        if content.parse_mode != "Markdown":
            return ()
        texts = texts_of(content)
        if self._workers is None or _is_small(content):
            return unclosed_marks(texts)
        return await self._call(self._workers, unclosed_marks, texts, workspace)

    def _under_policy(self, profiles: tuple[Profile, ...]) -> tuple[Profile, ...]:
        return tuple(under(self._policy, profile) for profile in profiles) if self._policy else profiles

    async def _call(
        self,
        workers: WorkerProcesses,
        function: Callable[[Argument], Result],
        argument: Argument,
        workspace: WorkspaceId,
    ) -> Result:
        try:
            return await workers.run(function, argument, holder=workspace)
        except TooComplex:
            raise InvalidPost("text", "the post takes too long to process; shorten it or use less markup") from None
        except QueueFull:
            raise AtCapacity("too many large posts of this workspace are being processed; retry later") from None


def is_quickly_read(body: bytes) -> bool:
    """Counts these signs, because each JSON value has one of them before it."""
    if len(body) <= SMALL_VALUES:
        return True
    return len(body) <= SMALL_BODY and sum(map(body.count, (b",", b"[", b"{", b":"))) <= SMALL_VALUES


def _is_quickly_normalized(request: PostRequest) -> bool:
    texts = len(request.text or "")
    if not (request.media or request.links or request.buttons):  # most posts
        return texts <= SMALL_TEXT
    texts += sum(len(item.caption or "") for item in request.media)
    addresses = sum(map(len, request.links)) + sum(len(item.url or "") for item in request.media)
    addresses += sum(len(button.url) for button in _buttons(request))
    return texts // 2 + addresses <= SMALL_ADDRESSES


def _buttons(request: PostRequest) -> Iterator[PostButton]:
    for row in request.buttons:
        yield from (row,) if isinstance(row, PostButton) else row


def _plans(normalized: Normalized, *profiles: Profile) -> Iterator[PlanMade]:
    return map(plan_made, compile_all(normalized, profiles))


def _done_here(
    normalized: Normalized, profiles: Sequence[Profile], do: Callable[[Profile], object]
) -> Sequence[Profile]:
    """Returns the profiles that remain for a worker."""
    if not _is_small(normalized.content):
        return profiles
    left: list[Profile] = []
    begun = perf_counter()
    for profile in profiles:
        if profile.template_ref is None and perf_counter() - begun < INLINE:
            do(profile)
        else:
            left.append(profile)
    return left


def _is_small(content: Content) -> bool:
    if content.parse_mode is None:
        return _size(content) <= SMALL_TEXT
    return _size(content) <= SMALL_MARKUP and _signs(content) <= SMALL_SIGNS


def _signs(content: Content) -> int:
    texts = (content.text, *(medium.caption for medium in content.media))
    return sum(text.count(sign) for text in texts for sign in SIGNS[content.parse_mode])


def _size(content: Content) -> int:
    """Characters to compile."""
    if not (content.media or content.links):
        return len(content.text)
    return len(content.text) + sum(len(medium.caption) for medium in content.media) + sum(map(len, content.links))


def _calls(normalized: Normalized, profiles: Sequence[Profile]) -> Iterator[CompileCall]:
    """Split the work into calls that take well under a second."""
    if not profiles:
        return
    size = max(_size(normalized.content), TEMPLATE_SIZE)
    most = max(1, CALL_SIZE // size)
    for first in range(0, len(profiles), most):
        yield CompileCall(normalized, tuple(profiles[first : first + most]))
