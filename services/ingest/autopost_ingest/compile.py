"""Compile a post once per render profile; the profiles of a workspace are remembered between posts.

The database says which profiles a post needs and lacks. Remembering them only saves that question: a profile is
named by the hash of all that it is, so a remembered one is never out of date, at most unused.
"""

from collections import OrderedDict
from typing import Any

from autopost_adapters.compilers import compile_content
from autopost_contracts.ids import WorkspaceId
from autopost_contracts.plan import Compiled, Profile

from autopost_ingest.normalize import Normalized

WORKSPACES_REMEMBERED = 10_000
PROFILES_REMEMBERED = 64


class Profiles:
    """The render profiles lately needed in each workspace; a post may need more than are remembered."""

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
    """The renderings to enqueue with: one per profile, a plan or its problems."""
    return [_rendering(compiled) for compiled in compile_all(normalized, profiles)]


def compile_all(normalized: Normalized, profiles: tuple[Profile, ...]) -> list[Compiled]:
    return [compile_content(normalized.content, normalized.flags, profile) for profile in profiles]


def _rendering(compiled: Compiled) -> dict[str, Any]:
    base: dict[str, Any] = {"profile_hash": compiled.profile_hash}
    if compiled.template_version is not None:
        base["template_version"] = str(compiled.template_version)
    if compiled.plan is None:
        return base | {"problems": compiled.problems}
    plan = compiled.plan
    return base | {
        "plan_hash": plan.digest(),
        "rendered_text": "\n\n".join(part.text for part in plan.parts if part.text),
        "plan": plan,
        "calls": len(plan.parts),
    }
