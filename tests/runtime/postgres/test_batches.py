"""Questions to the database that several callers have at once go together."""

import asyncio

import asyncpg
import pytest
from autopost_runtime.postgres.batches import MOST, Batches

REFUSAL = asyncpg.NumericValueOutOfRangeError("out of range")


class Asked:
    """Answers with the double; ``bad`` requests make a call fail."""

    def __init__(self, bad: int | None = None, error: Exception = REFUSAL) -> None:
        self.bad = bad
        self.error = error
        self.held: asyncio.Event | None = None
        """What the ``bad`` request waits for when it is asked alone."""
        self.calls: list[list[int]] = []
        self.batches = Batches(self.answer, lambda number: number % 1000, lambda number: number)

    async def answer(self, numbers: list[int]) -> list[int]:
        self.calls.append(numbers)
        await asyncio.sleep(0)
        if self.bad in numbers:
            if self.held and len(numbers) == 1:
                await self.held.wait()
            raise self.error
        return [2 * number for number in numbers]

    async def ask(self, *numbers: int) -> list[int | BaseException]:
        return await asyncio.gather(*(self.batches.ask(number) for number in numbers), return_exceptions=True)


async def test_what_is_asked_while_a_call_is_under_way_goes_with_the_next() -> None:
    asked = Asked()
    first = asyncio.create_task(asked.batches.ask(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert await asked.ask(2, 3, 4) == [4, 6, 8]

    assert await first == 2
    assert asked.calls == [[1], [2, 3, 4]]


async def test_of_two_with_the_same_key_the_second_goes_later() -> None:
    asked = Asked()

    assert await asked.ask(1, 1001, 2, 2001) == [2, 2002, 4, 4002]

    assert asked.calls == [[1, 2], [1001], [2001]]


async def test_a_call_has_a_limit() -> None:
    asked = Asked()

    await asked.ask(*range(MOST + 1))

    assert [len(call) for call in asked.calls] == [MOST, 1]


async def test_one_that_fails_takes_no_other_along() -> None:
    asked = Asked(bad=2)

    assert await asked.ask(1, 2, 3) == [2, REFUSAL, 6]


@pytest.mark.parametrize("error", [ConnectionResetError(), asyncpg.AdminShutdownError("x")], ids=["lost", "stopping"])
async def test_an_error_of_the_whole_database_is_for_all_who_asked(error: Exception) -> None:
    asked = Asked(bad=2, error=error)

    assert await asked.ask(1, 2) == [error, error]
    assert len(asked.calls) == 1


async def test_one_whose_row_is_held_keeps_nobody_waiting() -> None:
    asked = Asked(bad=2, error=asyncpg.LockNotAvailableError("x"))
    asked.held = asyncio.Event()
    first = asyncio.create_task(asked.ask(0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    blocked, beside = (asyncio.create_task(asked.ask(number)) for number in (2, 3))
    answers = await beside, await asked.ask(4)
    was_waiting = not blocked.done()
    asked.held.set()

    assert (answers, was_waiting) == (([6], [8]), True)
    assert (await first, await blocked) == ([0], [asked.error])


async def test_one_who_gives_up_keeps_nobody_waiting() -> None:
    asked = Asked()
    gone = asyncio.create_task(asked.batches.ask(1))
    await asyncio.sleep(0)
    gone.cancel()

    assert await asked.ask(2) == [4]
