"""Compile a post once per render profile; the profiles of a workspace are cached between posts.

The database names the profiles that a post still needs. The cache only saves that round trip: a profile is identified
by the hash of its content, so a cached one cannot be stale, only unused.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from autopost_adapters.compilers import compile_content
from autopost_adapters.planning.media import UPLOAD_REQUIRED
from autopost_adapters.planning.settings import UploadPolicy
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.plan import Compiled, Problem, Profile
from autopost_runtime.secrets.redaction import quoted
from msgspec.structs import replace

from autopost_ingest.posts.normalize import Normalized

WORKSPACES_REMEMBERED = 10_000
PROFILES_REMEMBERED = 64
LONGEST_PROBLEM = 240


class KnownProfiles:
    """Cache of recently needed render profiles per workspace; a post may need more."""

    def __init__(self) -> None:
        self._by_workspace: OrderedDict[WorkspaceId, dict[str, Profile]] = OrderedDict()

    def known(self, workspace: WorkspaceId) -> tuple[Profile, ...]:
        return tuple(self._by_workspace.get(workspace, {}).values())

    def learn(self, workspace: WorkspaceId, profiles: tuple[Profile, ...]) -> None:
        known = self._by_workspace.setdefault(workspace, {})
        self._by_workspace.move_to_end(workspace)
        known.update({profile.profile_hash: profile for profile in profiles})
        for oldest in list(known)[:-PROFILES_REMEMBERED]:
            del known[oldest]
        if len(self._by_workspace) > WORKSPACES_REMEMBERED:
            self._by_workspace.popitem(last=False)


def compile_for(normalized: Normalized, profiles: tuple[Profile, ...]) -> list[dict[str, Any]]:
    """The renderings for enqueueing: one per profile, a plan or its problems."""
    return [rendering(normalized, profile) for profile in profiles]


def compile_all(normalized: Normalized, profiles: tuple[Profile, ...]) -> list[Compiled]:
    return [compile_content(normalized.content, normalized.flags, profile) for profile in profiles]


def needs_upload(problems: Sequence[Problem]) -> bool:
    """The media of the post must be fetched before this profile can be compiled."""
    return any(problem.code == UPLOAD_REQUIRED for problem in problems)


def under(policy: UploadPolicy, profile: Profile) -> Profile:
    """``policy`` is the default for channels whose settings have no upload policy."""
    own = profile.settings.get("upload_policy", {})
    if not policy or not isinstance(own, dict):
        return profile
    return replace(profile, settings={**profile.settings, "upload_policy": {**policy, **own}})


def rendering(normalized: Normalized, profile: Profile) -> dict[str, Any]:
    return rendering_of(compile_content(normalized.content, normalized.flags, profile))


def rendering_of(compiled: Compiled) -> dict[str, Any]:
    base: dict[str, Any] = {"profile_hash": compiled.profile_hash}
    if compiled.template_version is not None:
        base["template_version"] = str(compiled.template_version)
    if compiled.plan is None:
        return base | {"problems": [_stored_problem(problem) for problem in compiled.problems]}
    plan = compiled.plan
    return base | {
        "plan_hash": plan.digest(),
        "rendered_text": "\n\n".join(part.text for part in plan.parts if part.text),
        "plan": plan,
        "calls": len(plan.parts),
    }


def _stored_problem(problem: Problem) -> Problem:
    """The problem as stored with events and deliveries. Messages are already short and redacted; this is a second
    check."""
    return Problem(problem.code, quoted(problem.field), quoted(problem.message, LONGEST_PROBLEM))
