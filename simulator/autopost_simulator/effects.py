"""The effects of a fault on a call."""

from typing import Annotated, Literal

import msgspec

from autopost_simulator import reply
from autopost_simulator.catalogue import entry_reply, is_known, platform_of, status_reply
from autopost_simulator.journal import Platform
from autopost_simulator.reply import Reply

ErrorStatus = Annotated[int, msgspec.Meta(ge=400, le=599)]

_ENDINGS = ("status", "catalogue", "hang", "reset", "half", "garbage", "html")


class Effect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One failure, optionally after a delay; times are in seconds.

    ``accept``: the request takes effect although its answer is an error.
    ``half``: the head and the first half of an answer, then the connection closes.
    ``drip``: the pause after every byte of the body, for a correct answer or an error.
    """

    status: ErrorStatus | None = None
    retry_after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    description: str | None = None
    catalogue: str | None = None
    delay: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    drip: Annotated[float, msgspec.Meta(gt=0)] | None = None
    hang: bool = False
    reset: Literal["before", "after"] | None = None
    half: bool = False
    garbage: bool = False
    html: ErrorStatus | None = None
    accept: bool = False

    def __post_init__(self) -> None:
        chosen = [name for name in _ENDINGS if getattr(self, name)]
        if len(chosen) > 1:
            raise ValueError(f"give only one of {_quoted(_ENDINGS)}")
        if not chosen and not self.delay and not self.drip:
            raise ValueError(f"give one of {_quoted((*_ENDINGS, 'delay', 'drip'))}")
        if self.catalogue is not None and not is_known(self.catalogue):
            raise ValueError(f"unknown `catalogue` entry {self.catalogue!r}; GET /_sim/catalogue lists them")
        self._check_companions()

    def _check_companions(self) -> None:
        """A field without effect is an error."""
        if self.retry_after is not None and self.status is None and self.catalogue is None:
            raise ValueError("`retry_after` needs a `status` or a `catalogue`")
        if self.description is not None and self.status is None:
            raise ValueError("`description` needs a `status`")
        if self.accept and (not self.spoils or self.reset):
            raise ValueError("`accept` needs one of `status`, `catalogue`, `hang`, `half`, `garbage`, `html`")
        if self.drip and (self.hang or self.reset or self.half):
            raise ValueError("`drip` needs a whole answer, so none of `hang`, `reset`, `half`")

    @property
    def spoils(self) -> bool:
        return any(getattr(self, name) for name in _ENDINGS)

    @property
    def accepts(self) -> bool:
        return self.accept or self.reset == "after"

    @property
    def platform(self) -> Platform | None:
        """The platform where it can happen; ``None``: both."""
        return None if self.catalogue is None else platform_of(self.catalogue)

    def reply(self, platform: Platform) -> Reply:
        if self.half:
            return reply.accepted({"ok": True, "result": {}})
        if self.garbage:
            return reply.garbage()
        if self.html is not None:
            return reply.html(self.html)
        if self.catalogue is not None:
            return entry_reply(self.catalogue, self.retry_after)
        return status_reply(platform, self.status or 500, self.description, self.retry_after)


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
