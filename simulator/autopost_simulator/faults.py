"""Scripted faults: which calls they apply to.

Rules are tried in the order in which they were added; the first that applies is used. Every rule counts the
calls that match it, so ``nth`` means the nth call of that kind, not of all.
"""

import random
from datetime import datetime
from typing import Annotated, Any, Protocol

import msgspec

from autopost_simulator.effects import Effect
from autopost_simulator.fingerprint import as_fingerprint
from autopost_simulator.journal import Platform


class FaultSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Applies to ``times`` matching calls from the ``nth`` on; without ``times`` to one if ``nth`` is set, else to all.

    Calls that arrive at ``until`` or later are not affected. A catalogue error applies only to its own platform.
    """

    effect: Effect
    name: str | None = None
    platform: Platform | None = None
    method: str | None = None
    chat: int | str | None = None
    token: str | None = None
    nth: Annotated[int, msgspec.Meta(ge=1)] | None = None
    times: Annotated[int, msgspec.Meta(ge=1)] | None = None
    until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    probability: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.platform is not None and self.effect.platform not in (None, self.platform):
            raise ValueError(f"`catalogue` {self.effect.catalogue!r} does not exist in `platform` {self.platform!r}")


class Matchable(Protocol):
    @property
    def platform(self) -> Platform: ...
    @property
    def token(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def chat(self) -> str | None: ...
    @property
    def arrived_at(self) -> datetime: ...


class Fault:
    def __init__(self, number: int, spec: FaultSpec) -> None:
        self.name = spec.name or f"fault-{number}"
        self.effect = spec.effect
        self.matched = self.struck = 0
        self._spec = spec
        self._platform = spec.platform or spec.effect.platform
        self._token = None if spec.token is None else as_fingerprint(spec.token)
        self._method = None if spec.method is None else spec.method.lower()
        self._chat = None if spec.chat is None else str(spec.chat)
        self._times = spec.times or (1 if spec.nth else None)
        self._dice = random.Random(spec.seed)  # noqa: S311  repeatable on purpose

    @property
    def early(self) -> bool:
        """Whether it can be decided before the body, and with it the chat, is read."""
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
        shown: dict[str, Any] = msgspec.to_builtins(self._spec)
        return shown | {"name": self.name, "token": self._token, "matched": self.matched, "struck": self.struck}

    def _matches(self, call: Matchable) -> bool:
        return (
            self._platform in (None, call.platform)
            and self._method in (None, call.method.lower())
            and self._chat in (None, call.chat)
            and self._token in (None, call.token)
            and (self._spec.until is None or call.arrived_at < self._spec.until)
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
