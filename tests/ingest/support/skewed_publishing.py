"""A replica of ingest whose clock is wrong by so many seconds, its first word. The others are those of its sibling."""

import asyncio
import datetime
import sys
import time
from typing import Any

from ingest.support.killed_publishing import live


def skew(seconds: float) -> None:
    """For every module of ours that is loaded."""
    real, right = time.time, datetime.datetime

    class Wrong(right):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return right.now(tz) + datetime.timedelta(seconds=seconds)

    time.time = lambda: real() + seconds
    for name, module in list(sys.modules.items()):
        if name.startswith("autopost_") and getattr(module, "datetime", None) is right:
            module.datetime = Wrong  # type: ignore[attr-defined]


if __name__ == "__main__":
    skew(float(sys.argv[1]))
    asyncio.run(live(*sys.argv[2:5], "never"))
