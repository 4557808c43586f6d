"""Whether a text fits into one message, by the counting rule of the platform."""

from autopost_contracts.payload import ParseMode
from autopost_contracts.plan import Problem
from msgspec import Struct

from autopost_adapters.markup.marked import Marked
from autopost_adapters.planning.limits import Limits, Written


class Measure(Struct, frozen=True):
    """For one post: its parse mode may select the dialect, and so change the length."""

    limits: Limits
    parse_mode: ParseMode | None

    def write(self, marked: Marked) -> Written:
        return self.limits.write(marked, self.parse_mode)

    def fits_text(self, marked: Marked) -> bool:
        return self._fits(marked, self.limits.text.text)

    def surely_fits_text(self, written: Written) -> bool:
        """A fast check without counting: a character is at most four units or bytes."""
        limits = self.limits.text
        return len(written.text) * 4 <= min(limits.text, limits.raw_bytes or limits.text)

    def fits_caption(self, marked: Marked) -> bool:
        return self._fits(marked, self.limits.text.caption)

    def problem(self, marked: Marked, field: str) -> Problem | None:
        """Why this text does not fit into one message."""
        excess = self._excess(marked, self.limits.text.text)
        return Problem(excess[0], field, excess[1]) if excess else None

    def _fits(self, marked: Marked, allowed: int) -> bool:
        """Text that is certainly too long is not written: every visible character counts as at least one."""
        if self._min_length(marked) > allowed or self._has_too_much_markup(marked):
            return False
        return self._excess(marked, allowed) is None

    def _min_length(self, marked: Marked) -> int:
        """A lower bound of the length: where markup counts, each entity has at least a mark on both sides."""
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
