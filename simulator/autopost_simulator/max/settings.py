"""Settings of the simulated MAX: media processing time, speed of webhook time."""

from random import Random
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from autopost_simulator.max.media import KINDS, Kind

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]

_PLAIN = (
    "token_lifetime",
    "webhook_time_scale",
    "webhook_timeout",
    "webhook_patience",
    "webhook_parallel",
    "webhook_copies",
    "webhook_delays",
    "webhook_jitter",
    "webhook_seed",
)

WEBHOOK_TIMEOUT = 30.0
WEBHOOK_PATIENCE = 8 * 60 * 60.0


class SettingsSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A missing field keeps its value."""

    processing: dict[Kind, Seconds] | UnsetType = UNSET
    token_lifetime: Seconds | UnsetType | None = UNSET
    webhook_time_scale: Positive | UnsetType = UNSET
    webhook_timeout: Positive | UnsetType = UNSET
    webhook_patience: Positive | UnsetType = UNSET
    webhook_parallel: Annotated[int, msgspec.Meta(ge=1, le=100)] | UnsetType = UNSET
    webhook_copies: Annotated[int, msgspec.Meta(ge=1, le=100)] | UnsetType = UNSET
    webhook_delays: dict[str, Seconds] | UnsetType = UNSET
    webhook_jitter: Seconds | UnsetType = UNSET
    webhook_seed: int | UnsetType = UNSET


class MaxSettings:
    """With ``webhook_time_scale`` 60 a minute between attempts takes a second; ``webhook_timeout`` is not scaled.

    Up to ``webhook_parallel`` calls run at once; each update is delivered ``webhook_copies`` times, the copies at once
    where the calls may be. ``webhook_delays`` has seconds by update type before the first attempt, ``webhook_jitter``
    the most that is added by chance (``webhook_seed``), so later updates overtake earlier ones; both are scaled.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.processing: dict[Kind, float] = dict.fromkeys(KINDS, 0.0)
        self.token_lifetime: float | None = None
        self.webhook_time_scale = 1.0
        self.webhook_timeout = WEBHOOK_TIMEOUT
        self.webhook_patience = WEBHOOK_PATIENCE
        self.webhook_parallel = 1
        self.webhook_copies = 1
        self.webhook_delays: dict[str, float] = {}
        self.webhook_jitter = 0.0
        self.webhook_seed = 0
        self._chance = Random(0)  # noqa: S311  repeatable on purpose

    def change(self, spec: SettingsSpec) -> None:
        if spec.processing is not UNSET:
            self.processing |= spec.processing
        if spec.webhook_seed is not UNSET:
            self._chance = Random(spec.webhook_seed)  # noqa: S311  repeatable on purpose
        for name in _PLAIN:
            value = getattr(spec, name)
            if value is not UNSET:
                setattr(self, name, value)

    def webhook_delay(self, update_type: str) -> float:
        """Seconds before the first attempt."""
        jitter = self._chance.uniform(0, self.webhook_jitter) if self.webhook_jitter else 0.0
        return (self.webhook_delays.get(update_type, 0.0) + jitter) / self.webhook_time_scale

    def describe(self) -> dict[str, Any]:
        return {"processing": self.processing} | {name: getattr(self, name) for name in _PLAIN}
