"""The compiler for Telegram; pure."""

from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import Compiled, Profile

from autopost_adapters.planning.compile_post import compile_post
from autopost_adapters.planning.limits import Limits
from autopost_adapters.telegram.limits import LIMITS


def compile_content(content: Content, flags: Flags, profile: Profile, limits: Limits = LIMITS) -> Compiled:
    return compile_post(content, flags, profile, limits)
