"""Settings of the simulated MAX: media processing time, speed of webhook time."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from autopost_simulator.max.media import KINDS, Kind

Seconds = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]

WEBHOOK_TIMEOUT = 30.0
WEBHOOK_PATIENCE = 8 * 60 * 60.0


class SettingsSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A missing field keeps its value."""

    processing: dict[Kind, Seconds] | UnsetType = UNSET
    token_lifetime: Seconds | UnsetType | None = UNSET
    webhook_time_scale: Positive | UnsetType = UNSET
    webhook_timeout: Positive | UnsetType = UNSET
    webhook_patience: Positive | UnsetType = UNSET


class MaxSettings:
    """With ``webhook_time_scale`` 60 a minute between attempts takes a second; ``webhook_timeout`` is not scaled."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.processing: dict[Kind, float] = dict.fromkeys(KINDS, 0.0)
        self.token_lifetime: float | None = None
        self.webhook_time_scale = 1.0
        self.webhook_timeout = WEBHOOK_TIMEOUT
        self.webhook_patience = WEBHOOK_PATIENCE

    def change(self, spec: SettingsSpec) -> None:
        if spec.processing is not UNSET:
            self.processing |= spec.processing
        for name in ("token_lifetime", "webhook_time_scale", "webhook_timeout", "webhook_patience"):
            value = getattr(spec, name)
            if value is not UNSET:
                setattr(self, name, value)

    def describe(self) -> dict[str, Any]:
        return {
            "processing": self.processing,
            "token_lifetime": self.token_lifetime,
            "webhook_time_scale": self.webhook_time_scale,
            "webhook_timeout": self.webhook_timeout,
            "webhook_patience": self.webhook_patience,
        }
