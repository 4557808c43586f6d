"""Functions that worker processes run for ingest, with their argument and result types.

An expected refusal is returned as a value, because only the class name of an exception reaches the service.
"""

from typing import Generic, TypeVar

import msgspec
from autopost_contracts.payload import PostRequest
from autopost_contracts.plan import Compiled, Problem, Profile
from autopost_runtime.http.web import HttpProblem
from msgspec import Struct
from msgspec.structs import replace

from autopost_ingest.errors import InvalidPost
from autopost_ingest.posts.compile import compile_all, rendering
from autopost_ingest.posts.normalize import Normalized, normalize
from autopost_ingest.request.bot_update import BotUpdate, InvalidUpdate, read_update
from autopost_ingest.request.post_request import read_post

Value = TypeVar("Value")


class CompileCall(Struct, frozen=True):
    post: Normalized
    profiles: tuple[Profile, ...]


class PlanMade(Struct, frozen=True, kw_only=True):
    """Result of compiling one profile. The plan is JSON, because ingest only passes it on."""

    profile_hash: str
    plan_hash: str | None
    plan: bytes | None
    problems: tuple[Problem, ...]
    template_version: int | None


class CallError(Struct, frozen=True, kw_only=True):
    """An exception as a value: ``HttpProblem`` with a status, ``InvalidPost`` with only a field, else
    ``InvalidUpdate``."""

    reason: str
    field: str | None = None
    status: int | None = None
    title: str = ""

    def exception(self) -> Exception:
        if self.status is not None:
            return HttpProblem(self.status, self.title, self.reason, field=self.field)
        return InvalidUpdate(self.reason) if self.field is None else InvalidPost(self.field, self.reason)


class CallResult(Struct, Generic[Value], frozen=True):
    made: Value | None = None
    fault: CallError = CallError(reason="nothing was read")

    def value(self) -> Value:
        """Raises the exception of the worker."""
        if self.made is None:
            raise self.fault.exception()
        return self.made


def read_post_call(body: bytes) -> CallResult[PostRequest]:
    try:
        return CallResult(read_post(body))
    except HttpProblem as exc:
        return CallResult(fault=CallError(reason=exc.detail, field=exc.field, status=exc.status, title=exc.title))
    except InvalidPost as exc:
        return CallResult(fault=CallError(reason=exc.reason, field=exc.field))


class UpdateRead(Struct, frozen=True):
    """The body is JSON, because ingest only stores it; decoding could create a million lists."""

    without_body: BotUpdate
    body: bytes

    def update(self) -> BotUpdate:
        return replace(self.without_body, body=msgspec.Raw(self.body))


def read_update_call(body: bytes) -> CallResult[UpdateRead]:
    try:
        read = read_update(body)
        return CallResult(UpdateRead(replace(read, body={}), msgspec.json.encode(read.body)))
    except InvalidUpdate as exc:
        return CallResult(fault=CallError(reason=str(exc)))


def normalize_call(request: PostRequest) -> CallResult[Normalized]:
    try:
        return CallResult(normalize(request))
    except InvalidPost as exc:
        return CallResult(fault=CallError(reason=exc.reason, field=exc.field))


def compile_call(call: CompileCall) -> tuple[PlanMade, ...]:
    return tuple(map(plan_made, compile_all(call.post, call.profiles)))


def plan_made(compiled: Compiled) -> PlanMade:
    plan = compiled.plan
    return PlanMade(
        profile_hash=compiled.profile_hash,
        plan_hash=plan.digest() if plan else None,
        plan=msgspec.json.encode(plan) if plan else None,
        problems=compiled.problems,
        template_version=compiled.template_version,
    )


def render_call(call: CompileCall) -> tuple[bytes, ...]:
    """Each rendering as the JSON that is stored."""
    return tuple(msgspec.json.encode(rendering(call.post, profile)) for profile in call.profiles)
