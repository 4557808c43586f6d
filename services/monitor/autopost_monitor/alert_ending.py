"""How telling a target ended. No ending holds a text that a target wrote, nor an address: they may hold secrets."""

from datetime import timedelta

from msgspec import Struct


class Delivered(Struct, frozen=True):
    pass


class Refused(Struct, frozen=True):
    """The target is there and does not want this one."""

    code: str


class Unreachable(Struct, frozen=True):
    """The target is away, shut, or asks to be left alone: nothing else would get through either."""

    code: str
    wait: timedelta | None = None


Ending = Delivered | Refused | Unreachable
