"""Telegram's limits. It counts visible code points, after the markup is parsed."""

from autopost_adapters.markup.marked import NAMES
from autopost_adapters.planning.limits import (
    MEBIBYTE,
    AlbumLimits,
    ButtonLimits,
    Limits,
    PictureLimits,
    TextLimits,
)
from autopost_adapters.telegram.write import write

WEB = frozenset({"http", "https", "tg"})

LIMITS = Limits(
    platform="telegram",
    text=TextLimits(
        text=4096,
        caption=1024,
        entities=100,  # Telegram silently drops the markup of the rest
        raw_bytes=32_768,
        counts="code points seen",
        kinds=frozenset(NAMES) - {"highlight"},
        schemes=WEB,
        hosts_have_dots=True,
    ),
    buttons=ButtonLimits(
        rows=100,
        per_row=8,
        total=100,
        encoded=10_000,  # not documented; Telegram refuses near this size
        schemes=WEB,
        hosts_have_dots=True,
    ),
    album=AlbumLimits(
        size=10,
        together=(frozenset({"image", "video"}), frozenset({"file"}), frozenset({"audio"})),
        captions=True,
        buttons=False,
        buttons_count=False,
    ),
    picture=PictureLimits(
        size=10 * MEBIBYTE,
        types=frozenset({"image/jpeg", "image/png", "image/webp"}),
        sides=10_000,
        ratio=20,
    ),
    sizes={
        "image": 10 * MEBIBYTE,
        "video": 50 * MEBIBYTE,
        "animation": 50 * MEBIBYTE,
        "audio": 50 * MEBIBYTE,
        "file": 50 * MEBIBYTE,
    },
    animations=True,
    provider_id="file_id",
    silent=True,
    protect=True,
    caption_above=True,
    preview_looks=True,
    threads=True,
    write=write,
)
