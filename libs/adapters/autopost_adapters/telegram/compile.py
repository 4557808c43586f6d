"""What a post becomes on this platform; pure."""

from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import Compiled, Profile

from autopost_adapters.telegram.profile import TEXT
from autopost_adapters.text import compile_text


def compile_content(content: Content, flags: Flags, profile: Profile) -> Compiled:
    return compile_text(content, flags, profile, TEXT)
