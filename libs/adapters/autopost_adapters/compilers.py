"""The compilers by platform. They are separate from the adapters because ingest compiles and never sends."""

from collections.abc import Mapping

from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import Compiled, Problem, Profile

from autopost_adapters.base import Compile
from autopost_adapters.max.compile import compile_content as compile_for_max
from autopost_adapters.telegram.compile import compile_content as compile_for_telegram

COMPILERS: Mapping[str, Compile] = {"telegram": compile_for_telegram, "max": compile_for_max}


def compile_content(
    content: Content, flags: Flags, profile: Profile, compilers: Mapping[str, Compile] = COMPILERS
) -> Compiled:
    """The plan for this profile, or the problems that prevent one."""
    compiler = compilers.get(profile.platform)
    if compiler is None:
        unknown = Problem("platform_unknown", "platform", f"unknown platform {profile.platform!r}")
        return Compiled(profile_hash=profile.profile_hash, problems=(unknown,))
    return compiler(content, flags, profile)
