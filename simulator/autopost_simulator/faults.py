"""Scripted misbehaviour: which calls it strikes, and what happens to them then.

Rules are tried in the order they were added and the first that strikes wins. Every rule counts the
calls that match it, so ``nth`` means the nth call of that kind, not of all.
"""

import random
from typing import Annotated, Any, Literal, Protocol

import msgspec

from autopost_simulator import reply
from autopost_simulator.catalogue import entry_reply, is_known, status_reply
from autopost_simulator.fingerprint import as_fingerprint
from autopost_simulator.journal import Platform
from autopost_simulator.reply import Reply

ErrorStatus = Annotated[int, msgspec.Meta(ge=400, le=599)]


class Effect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that goes wrong, perhaps after a delay.

    ``accept``: the request takes effect although its answer is spoiled.
    """

    status: ErrorStatus | None = None
    retry_after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    description: str | None = None
    catalogue: str | None = None
    delay: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    hang: bool = False
    reset: Literal["before", "after"] | None = None
    garbage: bool = False
    html: ErrorStatus | None = None
    accept: bool = False

    def __post_init__(self) -> None:
        ways = [self.status, self.catalogue, self.hang or None, self.reset, self.garbage or None, self.html]
        chosen = sum(way is not None for way in ways)
        if chosen > 1:
            raise ValueError("only one of `status`, `catalogue`, `hang`, `reset`, `garbage`, `html` can happen at once")
        if chosen == 0 and not self.delay:
            raise ValueError("one of `status`, `catalogue`, `delay`, `hang`, `reset`, `garbage`, `html` is needed")
        if self.catalogue is not None and not is_known(self.catalogue):
            raise ValueError(f"`catalogue` has no {self.catalogue!r}")

    @property
    def spoils(self) -> bool:
        return bool(self.status or self.catalogue or self.hang or self.reset or self.garbage or self.html)

    @property
    def accepts(self) -> bool:
        return self.accept or self.reset == "after"

    def reply(self, platform: Platform) -> Reply:
        if self.garbage:
            return reply.garbage()
        if self.html is not None:
            return reply.html(self.html)
        if self.catalogue is not None:
            return entry_reply(self.catalogue, self.retry_after)
        return status_reply(platform, self.status or 500, self.description, self.retry_after)


class FaultSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Strikes ``times`` matching calls from the ``nth`` on; without ``times`` one if ``nth`` is set, else all."""

    effect: Effect
    name: str | None = None
    platform: Platform | None = None
    method: str | None = None
    chat: int | str | None = None
    token: str | None = None
    nth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    times: Annotated[int, msgspec.Meta(ge=1)] | None = None
    probability: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    seed: int = 0


class Matchable(Protocol):
    @property
    def platform(self) -> Platform: ...
    @property
    def token(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def chat(self) -> str | None: ...


class Fault:
    def __init__(self, number: int, spec: FaultSpec) -> None:
        self.name = spec.name or f"fault-{number}"
        self.effect = spec.effect
        self.matched = self.struck = 0
        self._spec = spec
        self._token = None if spec.token is None else as_fingerprint(spec.token)
        self._method = None if spec.method is None else spec.method.lower()
        self._chat = None if spec.chat is None else str(spec.chat)
        self._times = spec.times or (1 if spec.nth else None)
        self._dice = random.Random(spec.seed)  # noqa: S311  repeatable on purpose

    @property
    def early(self) -> bool:
        """Can be decided on before the body tells which chat is meant."""
        return self.effect.reset == "before" and not self.effect.delay and self._chat is None

    def strikes(self, call: Matchable) -> bool:
        if not self._matches(call):
            return False
        self.matched += 1
        if self.matched < (self._spec.nth or 1) or (self._times is not None and self.struck >= self._times):
            return False
        if self._spec.probability is not None and self._dice.random() >= self._spec.probability:
            return False
        self.struck += 1
        return True

    def describe(self) -> dict[str, Any]:
        shown = {name: value for name, value in msgspec.to_builtins(self._spec).items() if value is not None}
        shown["effect"] = {key: value for key, value in shown["effect"].items() if value not in (None, False, 0.0)}
        return shown | {"name": self.name, "token": self._token, "matched": self.matched, "struck": self.struck}

    def _matches(self, call: Matchable) -> bool:
        return (
            self._spec.platform in (None, call.platform)
            and self._method in (None, call.method.lower())
            and self._chat in (None, call.chat)
            and self._token in (None, call.token)
        )


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._added = 0

    def add(self, spec: FaultSpec) -> Fault:
        self._added += 1
        fault = Fault(self._added, spec)
        self._faults = [other for other in self._faults if other.name != fault.name] + [fault]
        return fault

    def strike(self, call: Matchable, *, body_read: bool) -> Fault | None:
        return next((fault for fault in self._faults if fault.early != body_read and fault.strikes(call)), None)

    def describe(self) -> list[dict[str, Any]]:
        return [fault.describe() for fault in self._faults]

    def remove(self, name: str | None = None) -> int:
        before = len(self._faults)
        self._faults = [fault for fault in self._faults if name is not None and fault.name != name]
        return before - len(self._faults)
