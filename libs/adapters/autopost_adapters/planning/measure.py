"""Whether a text fits into one message, counted as the platform counts."""

from autopost_contracts.payload import ParseMode
from autopost_contracts.plan import Problem
from msgspec import Struct

from autopost_adapters.markup.marked import Marked
from autopost_adapters.planning.limits import Limits, Written


class Measure(Struct, frozen=True):
    """For one post: its parse mode may decide the dialect, and with it the length."""

    limits: Limits
    parse_mode: ParseMode | None

    def write(self, marked: Marked) -> Written:
        return self.limits.write(marked, self.parse_mode)

    def fits_text(self, marked: Marked) -> bool:
        return self._fits(marked, self.limits.text.text)

    def surely_fits_text(self, written: Written) -> bool:
        """Known without counting: no character is more than four of anything that is counted."""
        limits = self.limits.text
        return len(written.text) * 4 <= min(limits.text, limits.raw_bytes or limits.text)

    def fits_caption(self, marked: Marked) -> bool:
        return self._fits(marked, self.limits.text.caption)

    def problem(self, marked: Marked, field: str) -> Problem | None:
        """Why this is not one message of text."""
        excess = self._excess(marked, self.limits.text.text)
        return Problem(excess[0], field, excess[1]) if excess else None

    def _fits(self, marked: Marked, allowed: int) -> bool:
        """What is far too long is not written: no platform counts a character that is seen for less than one."""
        if self._least(marked) > allowed or self._has_too_much_markup(marked):
            return False
        return self._excess(marked, allowed) is None

    def _least(self, marked: Marked) -> int:
        """It is never shorter: where markup counts, the shortest has a mark on both sides."""
        marks = 2 * len(marked.entities) if self.limits.text.counts == "utf-16 units sent" else 0
        return len(marked.text) + marks

    def _has_too_much_markup(self, marked: Marked) -> bool:
        allowed = self.limits.text.entities
        return allowed is not None and len(marked.entities) > allowed

    def _excess(self, marked: Marked, allowed: int) -> tuple[str, str] | None:
        limits = self.limits.text
        written = self.write(marked)
        length = len(marked.text) if limits.counts == "code points seen" else utf16_units(written.text)
        if length > allowed:
            return "message_too_long", f"{length} characters, at most {allowed} are allowed"
        if self._has_too_much_markup(marked):
            return "too_much_markup", f"{len(marked.entities)} markup entities, at most {limits.entities} are allowed"
        size = len(written.text.encode(errors="surrogatepass"))
        if limits.raw_bytes is not None and size > limits.raw_bytes:
            return "message_too_long", f"{size} bytes with markup, at most {limits.raw_bytes} are allowed"
        return None


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2
