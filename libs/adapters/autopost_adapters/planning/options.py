"""Options of a post: silence, protection, previews, the topic. Unsupported options are dropped with a note."""

from collections.abc import Iterator

from autopost_contracts.payload import Flags
from autopost_contracts.plan import MediaPart, Part, Preview, TextPart
from msgspec import Struct
from msgspec.structs import replace

from autopost_adapters.planning.limits import Limits
from autopost_adapters.planning.settings import Settings

_VISIBLE = frozenset({"image", "video", "animation"})


class Options(Struct, frozen=True, kw_only=True):
    silent: bool
    protect: bool
    preview: Preview
    caption_above: bool
    thread: int | None

    def shown_on(self, limits: Limits) -> "Options":
        """The options that the platform supports."""
        preview = self.preview if limits.preview_looks else Preview(disabled=self.preview.disabled)
        return Options(
            silent=self.silent and limits.silent,
            protect=self.protect and limits.protect,
            preview=preview,
            caption_above=self.caption_above and limits.caption_above,
            thread=self.thread if limits.threads else None,
        )

    def dress(self, part: Part) -> Part:
        match part:
            case TextPart(preview=Preview(url=url)):
                return replace(part, preview=self._preview(url), silent=self.silent, protect=self.protect)
            case MediaPart(media=media):
                above = self.caption_above and bool(part.text) and media[0].type in _VISIBLE
                return replace(part, caption_above=above, silent=self.silent, protect=self.protect)

    def _preview(self, url: str | None) -> Preview:
        """Only a preview has a size, and only a link a preview."""
        if self.preview.size is None:
            return self.preview
        return replace(self.preview, url=url, size=self.preview.size if url else None)


def read_options(flags: Flags, settings: Settings) -> Options:
    """A post can turn options on, but not off where the channel has them on."""
    if flags.disable_preview or settings.disable_preview:
        preview = Preview(disabled=True)
    else:
        preview = Preview(size=settings.preview_size, above_text=settings.preview_above)
    return Options(
        silent=flags.silent or settings.silent,
        protect=flags.protect or settings.protect,
        preview=preview,
        caption_above=settings.caption_above,
        thread=flags.thread,
    )


def dropped(asked: Options, shown: Options) -> Iterator[str]:
    """A note for each option that was requested and is not supported."""
    if asked == shown:
        return
    names = {
        "silent": "silent",
        "protect": "protect",
        "preview": "a look of the preview",
        "caption_above": "caption_above",
        "thread": "routing.thread",
    }
    for field, name in names.items():
        if getattr(asked, field) != getattr(shown, field):
            yield f"{name} is not supported by the platform and was dropped"
