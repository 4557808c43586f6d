"""The compiler for MAX; pure."""

from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import Compiled, Profile

from autopost_adapters.max.limits import LIMITS
from autopost_adapters.planning.compile_post import compile_post
from autopost_adapters.planning.limits import Limits


def compile_content(content: Content, flags: Flags, profile: Profile, limits: Limits = LIMITS) -> Compiled:
    return compile_post(content, flags, profile, limits)
