"""Of a flood of wrong status tokens the database hears once a second; a good one is asked for each time."""

from datetime import UTC, datetime, timedelta

from autopost_monitor.status.gateway import Viewer
from autopost_monitor.status.misses import AT_MOST, Misses

VIEWER = Viewer(label="ann", workspace=None, expires_at=datetime.max.replace(tzinfo=UTC))
HOUR = timedelta(hours=1)


class Known:
    """Stands in for the database."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tokens = {"good": VIEWER}

    async def resolve_status_token(self, token_hash: str) -> Viewer | None:
        self.asked.append(token_hash)
        return self.tokens.get(token_hash)


async def test_a_wrong_token_is_asked_for_once() -> None:
    known = Known()
    misses = Misses(known, HOUR)

    assert [await misses.resolve_status_token("wrong") for _ in range(20)] == [None] * 20
    assert known.asked == ["wrong"]


async def test_a_good_one_is_asked_for_each_time_and_refused_when_it_is_revoked() -> None:
    known = Known()
    misses = Misses(known, HOUR)
    assert [await misses.resolve_status_token("good") for _ in range(2)] == [VIEWER] * 2

    known.tokens.clear()

    assert await misses.resolve_status_token("good") is None
    assert known.asked == ["good"] * 3


async def test_one_that_is_issued_after_it_was_tried_works_when_the_miss_is_forgotten() -> None:
    known = Known()
    misses = Misses(known, timedelta(0))
    assert await misses.resolve_status_token("new") is None

    known.tokens["new"] = VIEWER

    assert await misses.resolve_status_token("new") is VIEWER


async def test_made_up_tokens_fill_no_more_than_their_room() -> None:
    known = Known()
    misses = Misses(known, HOUR)

    for number in range(AT_MOST + 1):
        await misses.resolve_status_token(str(number))
    for number in (AT_MOST, 0):
        await misses.resolve_status_token(str(number))

    assert known.asked[AT_MOST + 1 :] == ["0"]
