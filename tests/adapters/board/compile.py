"""What a post becomes on the board: plain text of 500 characters, six pictures to a notice."""

from autopost_adapters.planning.compile_post import compile_post
from autopost_adapters.planning.limits import AlbumLimits, ButtonLimits, Limits, PictureLimits, TextLimits, Written
from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import Compiled, Profile

MOST = 1024 * 1024

LIMITS = Limits(
    platform="board",
    text=TextLimits(text=500, caption=100, counts="code points seen", kinds=frozenset(), schemes=frozenset({"https"})),
    buttons=ButtonLimits(rows=1, per_row=2, total=2, schemes=frozenset({"https"})),
    album=AlbumLimits(size=6, together=(frozenset({"image"}),), captions=False, buttons=True, buttons_count=False),
    picture=PictureLimits(size=MOST, types=frozenset({"image/png"})),
    sizes=dict.fromkeys(("image", "video", "animation", "audio", "file"), MOST),
    animations=False,
    provider_id="file_id",
    silent=False,
    protect=False,
    caption_above=False,
    preview_looks=False,
    threads=False,
    write=lambda marked, _parse_mode: Written(marked.text),
)


def compile_content(content: Content, flags: Flags, profile: Profile) -> Compiled:
    return compile_post(content, flags, profile, LIMITS)
