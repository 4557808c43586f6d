"""Wait for a condition, never for a duration: the only place in the tests that sleeps."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar, overload

T = TypeVar("T")


class NeverError(AssertionError):
    """The condition did not come true in time."""


@overload
async def eventually(condition: Callable[[], Awaitable[T]], within: timedelta = ...) -> T: ...
@overload
async def eventually(condition: Callable[[], T], within: timedelta = ...) -> T: ...
async def eventually(condition: Callable[[], Any], within: timedelta = timedelta(seconds=10)) -> Any:
    """The first true answer of ``condition``, which may be a coroutine function or a plain one."""
    deadline = asyncio.get_running_loop().time() + within.total_seconds()
    pause = 0.002
    while not (answer := await _ask(condition)):
        if asyncio.get_running_loop().time() > deadline:
            raise NeverError(f"not within {within.total_seconds():g} s; the last answer was {answer!r}")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    return answer


async def _ask(condition: Callable[[], Any]) -> Any:
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer
