"""MAX's limits. Its counting is not documented, so the strictest rule applies: UTF-16 units of the text as sent, with
markup, and a keyboard counts as an attachment."""

from autopost_adapters.markup.links import SCHEMES
from autopost_adapters.markup.marked import NAMES
from autopost_adapters.max.write import write
from autopost_adapters.planning.limits import (
    MEBIBYTE,
    AlbumLimits,
    ButtonLimits,
    Limits,
    PictureLimits,
    TextLimits,
)

LIMITS = Limits(
    platform="max",
    text=TextLimits(
        text=4000,
        caption=4000,
        counts="utf-16 units sent",
        kinds=frozenset(NAMES) - {"spoiler", "expandable_quote", "custom_emoji", "time"},
        schemes=SCHEMES,
    ),
    buttons=ButtonLimits(
        rows=30,
        per_row=3,
        per_row_without_links=7,
        total=210,
        kinds=frozenset({"link", "say", "callback"}),
        text=128,
        payload=1024,
        schemes=SCHEMES,
    ),
    album=AlbumLimits(
        size=12,
        together=(frozenset({"image", "video"}),),
        captions=False,
        buttons=True,
        buttons_count=True,
    ),
    picture=PictureLimits(
        size=50 * MEBIBYTE,
        types=frozenset({"image/jpeg", "image/png", "image/gif", "image/tiff", "image/bmp", "image/heic"}),
        side=7680,
    ),
    sizes={
        "image": 50 * MEBIBYTE,
        "video": 250 * MEBIBYTE,
        "animation": 250 * MEBIBYTE,
        "audio": 256 * MEBIBYTE,
        "file": 4096 * MEBIBYTE,
    },
    video_types=frozenset({"video/mp4", "video/quicktime", "video/x-matroska", "video/webm"}),
    animations=False,
    provider_id="attachment_token",
    by_url=frozenset({"image"}),
    silent=False,  # channels reject notify: false
    protect=False,
    caption_above=False,
    preview_looks=False,
    threads=False,
    write=write,
)
