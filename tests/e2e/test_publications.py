"""The tables of publications, row by row, on one running system: media, content, errors, cancels.

All rows go on at once, each in a channel of its own. What counts is what the platform saw.
"""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import nats
import pytest
from autopost_cli.development import WORKSPACE
from autopost_contracts.subjects import Topology
from harness.eventually import eventually
from msgspec import Struct

from e2e.conftest import StartSystem
from e2e.publications import ENVIRONMENT, PLENTY, Place, Publications, Seen

pytestmark = pytest.mark.time_limit(240)

BUTTON = {"text": "Buy", "url": "https://shop.example/"}
BUY = (("Buy", "https://shop.example/"),)
SALE = "<b>Sale</b> &amp; more"
SHOWN = {"text": "Sale & more", "bold": ("Sale",)}
FAST = {"AUTOPOST_PROVIDER_TIMEOUT": "7s", "AUTOPOST_SENDING_LEASE": "20s"}
STEP = timedelta(seconds=3)
HOUR = timedelta(hours=1)
MOST_EARLY = 0.02
"""Seconds that a call may be early at the receiver: the one before it travelled longer."""

Scenario = Callable[[Publications], Awaitable[None]]


class MediaRow(Struct, frozen=True):
    """Method and messages for a kind of creative; ``album`` is its items."""

    media: tuple[str, ...]
    method: str

    async def check(self, publications: Publications, *, has_buttons: bool) -> None:
        place = await publications.place()
        creative = {"text": SALE, "media": publications.media(*self.media), "buttons": [BUTTON] * has_buttons}

        publication = await publications.publish(place, creative)

        shown = await publications.ended(publication)
        first = (await publications.messages(place))[0]["id"]
        assert (shown["status"], shown["published_message_id"]) == ("published", str(first))
        assert await publications.calls(place) == [(method, 200) for method in self.methods(has_buttons)]
        assert await publications.seen(place) == list(self.seen(has_buttons))

    def methods(self, has_buttons: bool) -> list[str]:
        return [self.method] + ["sendMessage"] * (has_buttons and len(self.media) > 1)

    def seen(self, has_buttons: bool) -> Iterator[Seen]:
        buttons = BUY * has_buttons
        match self.media:
            case ():
                yield Seen(**SHOWN, buttons=buttons)
            case (kind,):
                yield Seen(kind, **SHOWN, buttons=buttons)
            case (kind, *others):
                yield Seen(kind, **SHOWN)
                yield from (Seen(other) for other in others)
                if has_buttons:
                    yield Seen(text="👇", buttons=buttons)


MEDIA = (
    MediaRow((), "sendMessage"),
    MediaRow(("photo",), "sendPhoto"),
    MediaRow(("video",), "sendVideo"),
    MediaRow(("document",), "sendDocument"),
    MediaRow(("animation",), "sendAnimation"),
    MediaRow(("photo", "video"), "sendMediaGroup"),
    MediaRow(("photo",) * 10, "sendMediaGroup"),
)


class ContentRow(Struct, frozen=True):
    """A field of the creative, and what readers see of it."""

    creative: dict[str, Any]
    seen: Seen

    async def check(self, publications: Publications) -> None:
        place = await publications.place()
        publication = await publications.publish(place, self.creative)
        assert (await publications.ended(publication))["status"] == "published"
        assert await publications.seen(place) == [self.seen]


LINK = "see https://shop.example/sale"
CONTENT = {
    "the text is HTML": ContentRow({"text": SALE}, Seen(**SHOWN)),
    "the text is as it is written": ContentRow(
        {"text": "<b>5 < 6 & 7</b>", "parse_mode": None}, Seen(text="<b>5 < 6 & 7</b>")
    ),
    "the text is Markdown": ContentRow(
        {"text": "**Sale** & more", "parse_mode": "Markdown"}, Seen(text="Sale & more", bold=("Sale",))
    ),
    "a link has a preview": ContentRow({"text": LINK}, Seen(text=LINK)),
    "a link has none": ContentRow({"text": LINK, "disable_web_page_preview": True}, Seen(text=LINK, preview=False)),
    "buttons in rows": ContentRow(
        {"text": "two", "buttons": [[BUTTON, BUTTON], [BUTTON]]}, Seen(text="two", buttons=BUY * 3)
    ),
}


class ErrorRow(Struct, frozen=True, kw_only=True):
    """An answer of the platform, and what follows: each call's status, the end, whether a dead letter tells of it."""

    effect: dict[str, Any]
    calls: tuple[int | None, ...]
    ends: tuple[str, str | None]
    """Status, and the ``error_type`` or the reason of the pause."""
    media: tuple[str, ...] = ()
    bot: str = "calm"
    times: int | None = None
    letter: bool = False

    async def check(self, publications: Publications) -> str:
        place = await publications.place(self.bot)
        await publications.fault(place, self.effect, **({"times": self.times} if self.times else {}))
        creative = {"text": SALE, "media": publications.media(*self.media)}

        publication = await publications.publish(place, creative, owner="mailto:ann@shop.example")

        shown = await publications.ended(publication)
        why = shown["pause_code"] or (shown["last_error"] or {}).get("error_type")
        assert (shown["status"], why) == self.ends, shown
        assert [status for _, status in await publications.calls(place)] == list(self.calls)
        await _check_waits(publications, place, self.effect.get("retry_after", 0))
        return publication


async def _check_waits(publications: Publications, place: Place, asked: float) -> None:
    """What the platform asked for, and the three seconds between two first calls of a publication."""
    for earlier, later in itertools.pairwise(await publications.log(place)):
        gap = (later["arrived_ns"] - earlier["arrived_ns"]) / 1e9
        assert gap >= STEP.total_seconds() - MOST_EARLY, gap
        assert (later["arrived_ns"] - earlier["answered_ns"]) / 1e9 >= asked


REFUSED = {"ends": ("failed", "bot_not_in_channel"), "letter": True}
RESTRICTED = {"ends": ("failed", "channel_restricted"), "letter": True}
EXPIRED = {"ends": ("paused", "file_id_expired"), "letter": True}
CONTENT_REFUSED = {"ends": ("failed", "content"), "letter": True}
UNCONFIRMED = ("paused", "unconfirmed")
ALBUM = ("photo", "photo")
FORBIDDEN = {"status": 403, "description": "Forbidden: not enough rights to send text messages to the chat"}
BUSY = {"status": 429, "retry_after": 1}
CONFLICT = {"catalogue": "telegram.terminated_by_other_get_updates"}


def _named(name: str) -> dict[str, Any]:
    return {"catalogue": f"telegram.{name}"}


ERRORS = {
    "bot kicked": ErrorRow(effect=_named("bot_was_kicked"), calls=(403,), **REFUSED),
    "bot not a member": ErrorRow(effect=_named("bot_is_not_a_member"), calls=(403,), **REFUSED),
    "chat not found": ErrorRow(effect=_named("chat_not_found"), calls=(400,), **REFUSED),
    "channel restricted, 403": ErrorRow(effect=FORBIDDEN, calls=(403,), **RESTRICTED),
    "channel restricted, 400": ErrorRow(effect=_named("chat_write_forbidden"), calls=(400,), **RESTRICTED),
    "rate limit once": ErrorRow(effect=BUSY, times=1, bot="hasty", calls=(429, 200), ends=("published", None)),
    "rate limit always": ErrorRow(
        effect=BUSY, bot="busy", calls=(429,) * 4, ends=("failed", "rate_limit"), letter=True
    ),
    "file id expired": ErrorRow(effect=_named("invalid_file_id"), media=("photo",), calls=(400,), **EXPIRED),
    "file id expired in an album": ErrorRow(
        effect=_named("wrong_remote_file_identifier"), media=ALBUM, calls=(400,), **EXPIRED
    ),
    "album refused twice": ErrorRow(
        effect=_named("failed_to_send_item"), times=2, media=ALBUM, calls=(400, 400, 200), ends=("published", None)
    ),
    "album refused always": ErrorRow(
        effect=_named("failed_to_send_item"), media=ALBUM, calls=(400,) * 4, ends=("failed", "media_group"), letter=True
    ),
    "markup refused": ErrorRow(effect=_named("cant_parse_entities"), calls=(400,), **CONTENT_REFUSED),
    "buttons refused": ErrorRow(effect=_named("button_url_invalid"), calls=(400,), **CONTENT_REFUSED),
    "platform busy with itself, once": ErrorRow(effect=CONFLICT, times=1, calls=(409, 200), ends=("published", None)),
    "platform busy with itself": ErrorRow(effect=CONFLICT, calls=(409,) * 4, ends=("failed", "platform"), letter=True),
}


async def three_in_one_channel(publications: Publications) -> None:
    """At most one call in three seconds, repeated ones too."""
    place = await publications.place("hasty", max_parallel=5, rate_rps=10)
    await publications.fault(place, CONFLICT, times=1)

    made = [await publications.publish(place, {"text": f"ad {nth}"}) for nth in range(3)]

    assert {(await publications.ended(one))["status"] for one in made} == {"published"}
    assert len(await publications.calls(place)) == 4
    await _check_waits(publications, place, 0)


async def an_album_whose_buttons_were_refused_is_not_sent_again(publications: Publications) -> None:
    place = await publications.place()
    await publications.fault(place, _named("button_url_invalid"), method="sendMessage", times=1)
    creative = {"text": SALE, "media": publications.media("photo", "photo"), "buttons": [BUTTON]}
    publication = await publications.publish(place, creative)
    assert (await publications.ended(publication))["status"] == "failed"

    await publications.done(publication, "retry", {"reason": "the shop is back"})

    shown = await publications.becomes(publication, status="published")
    assert await publications.calls(place) == [("sendMediaGroup", 200), ("sendMessage", 400), ("sendMessage", 200)]
    assert shown["published_message_id"] == str((await publications.messages(place))[0]["id"])


def unanswered(effect: dict[str, Any], decision: str, calls: tuple[int | None, ...]) -> Scenario:
    """A call that perhaps arrived is not repeated until a person has looked."""

    async def check(publications: Publications) -> None:
        place = await publications.place("hasty")
        await publications.fault(place, effect, times=1)
        publication = await publications.publish(place, {"text": SALE})
        shown = await publications.ended(publication)
        assert (shown["status"], shown["pause_code"]) == UNCONFIRMED

        body = {"decision": decision, "reason": "looked"}
        await publications.done(publication, "resolve", body)

        await publications.becomes(publication, status="published")
        assert [status for _, status in await publications.calls(place)] == list(calls)
        assert len(await publications.messages(place)) == 1

    return check


async def another_plan_than_the_approved_one(publications: Publications) -> None:
    """The settings of the channel were changed after the approval: its owner decides."""
    place = await publications.place()
    publication = await publications.draft(place, {"text": LINK}, owner="mailto:ann@shop.example")
    await publications.done(publication, "approve")
    await publications.sql(
        "UPDATE channels SET settings = '{\"disable_preview\": true}' WHERE channel_id = $1", place.channel
    )
    await publications.schedule(publication)

    shown = await publications.ended(publication)
    assert (shown["status"], shown["pause_code"]) == ("paused", "plan_changed")
    notice = "SELECT count(*) FROM publication_notices WHERE publication_id = $1 AND code = 'plan_changed'"
    assert await publications.sql(notice, UUID(publication)) == 1

    body = {"channel_id": str(place.channel), "creative_draft": {"text": LINK}}
    edited = await publications.call("PUT", f"/{publication}", body, f'"{shown["version"]}"')
    assert edited.json()["status"] == "draft"
    await publications.done(publication, "approve")
    await publications.schedule(publication)
    assert (await publications.ended(publication))["status"] == "published"
    assert await publications.seen(place) == [Seen(text=LINK, preview=False)]


async def _is_due(publications: Publications, publication: str) -> None:
    """The hour is over."""
    await publications.sql(
        "UPDATE publications SET scheduled_at = clock_timestamp() WHERE publication_id = $1", UUID(publication)
    )


async def a_channel_that_is_disabled_meanwhile(publications: Publications) -> None:
    place = await publications.place()
    publication = await publications.draft(place, {"text": SALE})
    await publications.done(publication, "approve")
    await publications.schedule(publication, HOUR)
    await publications.sql("UPDATE channels SET enabled = false WHERE channel_id = $1", place.channel)
    await _is_due(publications, publication)
    assert (await publications.ended(publication))["pause_code"] == "channel_disabled"
    again = await publications.do(publication, "schedule", {"at": "2090-01-01T00:00:00Z"})
    assert (again.status_code, again.json()["code"]) == (422, "channel_disabled")

    await publications.sql("UPDATE channels SET enabled = true WHERE channel_id = $1", place.channel)
    await publications.schedule(publication)

    assert (await publications.ended(publication))["status"] == "published"
    assert await publications.calls(place) == [("sendMessage", 200)]


CLOSED = """UPDATE channels SET window_mode = 'windowed', timezone = 'UTC', posting_window = jsonb_build_object(
    lower(to_char(clock_timestamp() AT TIME ZONE 'UTC' + '3 days', 'dy')), '[["10:00", "11:00"]]'::jsonb)"""
HELD = {
    "a closed window": (CLOSED, "window_mode = 'immediate'"),
    "a pause": ("UPDATE channels SET paused_until = clock_timestamp() + '1 hour'", "paused_until = NULL"),
}


def held_by(shuts: str, opens: str) -> Scenario:
    """After it was scheduled: the operator is told that it is late, and it goes out once the channel is open."""

    async def check(publications: Publications) -> None:
        place = await publications.place()
        publication = await publications.draft(place, {"text": SALE})
        await publications.done(publication, "approve")
        await publications.schedule(publication, HOUR)
        await publications.sql(f"{shuts} WHERE channel_id = $1", place.channel)
        await _is_due(publications, publication)
        await eventually(lambda: _is_begun(publications, publication), within=PLENTY)
        assert await publications.calls(place) == []
        older = "UPDATE publications SET scheduled_at = scheduled_at - interval '1 hour' WHERE publication_id = $1"
        await publications.sql(older, UUID(publication))
        causes = await publications.sql("SELECT causes::text FROM condition_publications_late('30 minutes')")
        assert publication in causes

        await publications.sql(f"UPDATE channels SET {opens} WHERE channel_id = $1", place.channel)

        assert (await publications.ended(publication))["status"] == "published"
        assert await publications.calls(place) == [("sendMessage", 200)]

    return check


async def a_time_there_and_back_again(publications: Publications) -> None:
    """Within the time in which the stream takes one id for one message."""
    place = await publications.place()
    publication = await publications.draft(place, {"text": SALE})
    await publications.done(publication, "approve")
    at = datetime.now(UTC) + timedelta(seconds=8)
    for time in (at, at + HOUR, at):
        await publications.done(publication, "schedule", {"at": time.isoformat()})

    assert (await publications.ended(publication))["status"] == "published"

    [call] = await publications.log(place)
    assert datetime.fromisoformat(call["arrived_at"]) >= at


async def _cancel(publications: Publications, publication: str) -> tuple[int, str]:
    answer = await publications.do(publication, "cancel", {"reason": "a wrong price"})
    return answer.status_code, answer.json().get("code") or answer.json()["status"]


CANCELLED = (200, "cancelled")


async def cancelled_before_its_time(publications: Publications) -> None:
    place = await publications.place()
    drafted = await publications.draft(place, {"text": "drafted"})
    approved = await publications.draft(place, {"text": "approved"})
    await publications.done(approved, "approve")
    scheduled = await publications.draft(place, {"text": "scheduled"})
    await publications.done(scheduled, "approve")
    await publications.schedule(scheduled, HOUR)

    for publication in (drafted, approved, scheduled):
        assert await _cancel(publications, publication) == CANCELLED
        assert await _cancel(publications, publication) == (409, "already")
    assert await publications.calls(place) == []


async def cancelled_in_the_queue(publications: Publications) -> None:
    place = await publications.place()
    await _pause(publications, place, "clock_timestamp() + interval '1 hour'")
    publication = await publications.publish(place, {"text": SALE})
    await eventually(lambda: _is_begun(publications, publication), within=PLENTY)

    assert await _cancel(publications, publication) == CANCELLED

    await _pause(publications, place, "NULL")
    assert await _marker(publications, place) == ["marker"]


async def cancelled_while_it_waits_for_its_next_attempt(publications: Publications) -> None:
    """The call before it was refused, so the channel has nothing."""
    place = await publications.place("hasty")
    await publications.fault(place, CONFLICT, times=1)
    publication = await publications.publish(place, {"text": SALE})
    await eventually(lambda: _has_calls(publications, place), within=PLENTY)
    await eventually(lambda: _is_retried(publications, publication), within=PLENTY)

    assert await _cancel(publications, publication) == CANCELLED

    assert await _marker(publications, place) == ["marker"]


async def cancelled_while_it_is_sent(publications: Publications) -> None:
    place = await publications.place("slow")
    await publications.fault(place, {"delay": 5}, times=1)
    publication = await publications.publish(place, {"text": SALE})
    await eventually(lambda: _is_sending(publications, publication), within=PLENTY)

    assert await _cancel(publications, publication) == (409, "too_late")

    assert (await publications.ended(publication))["status"] == "published"
    assert await publications.calls(place) == [("sendMessage", 200)]
    assert await _cancel(publications, publication) == (409, "already")


async def cancelled_after_it_failed(publications: Publications) -> None:
    place = await publications.place()
    await publications.fault(place, _named("cant_parse_entities"), times=1)
    publication = await publications.publish(place, {"text": SALE})
    assert (await publications.ended(publication))["status"] == "failed"

    assert await _cancel(publications, publication) == CANCELLED

    assert (await publications.do(publication, "retry", {"reason": "x"})).json()["code"] == "not_retryable"
    assert await _marker(publications, place) == ["marker"]


async def cancelled_after_a_call_without_an_answer(publications: Publications) -> None:
    place = await publications.place("hasty")
    await publications.fault(place, {"hang": True, "accept": True}, times=1)
    publication = await publications.publish(place, {"text": SALE})
    assert (await publications.ended(publication))["pause_code"] == "unconfirmed"

    answer = await publications.do(publication, "cancel", {"reason": "looked"})

    assert (answer.status_code, answer.json()["status"]) == CANCELLED
    assert [one["code"] for one in answer.json()["warnings"]] == ["perhaps_sent"]
    assert len(await publications.calls(place)) == 1


async def _marker(publications: Publications, place: Place) -> list[str | None]:
    """What the chat shows once a later publication has arrived: nothing that was cancelled can come any more."""
    marker = await publications.publish(place, {"text": "marker"})
    assert (await publications.ended(marker))["status"] == "published"
    return [message["text"] for message in await publications.messages(place)]


async def _pause(publications: Publications, place: Place, until: str) -> None:
    await publications.sql(f"UPDATE channels SET paused_until = {until} WHERE channel_id = $1", place.channel)


async def _is_begun(publications: Publications, publication: str) -> bool:
    return (await publications.show(publication))["delivery_id"] is not None


async def _has_calls(publications: Publications, place: Place) -> bool:
    return len(await publications.calls(place)) == 1


async def _status(publications: Publications, publication: str) -> str | None:
    status: str | None = await publications.sql(
        "SELECT status::text FROM deliveries WHERE enqueue_batch_id = $1", UUID(publication)
    )
    return status


async def _is_retried(publications: Publications, publication: str) -> bool:
    return await _status(publications, publication) == "retry"


async def _is_sending(publications: Publications, publication: str) -> bool:
    return await _status(publications, publication) == "sending"


CANCELS = (
    cancelled_before_its_time,
    cancelled_in_the_queue,
    cancelled_while_it_waits_for_its_next_attempt,
    cancelled_while_it_is_sent,
    cancelled_after_it_failed,
    cancelled_after_a_call_without_an_answer,
)
OTHERS = (
    three_in_one_channel,
    an_album_whose_buttons_were_refused_is_not_sent_again,
    another_plan_than_the_approved_one,
    a_channel_that_is_disabled_meanwhile,
    a_time_there_and_back_again,
    *(held_by(*one) for one in HELD.values()),
    unanswered({"hang": True, "accept": True}, "sent", (None,)),
    unanswered({"hang": True}, "resend", (None, 200)),
    unanswered({"status": 502}, "resend", (502, 200)),
    *CANCELS,
)


async def check_errors(publications: Publications) -> None:
    rows = list(ERRORS.values())
    made = await _all(*(row.check(publications) for row in rows), names=tuple(ERRORS))
    letters = {
        (publication, row.ends[1], len(row.calls)) for publication, row in zip(made, rows, strict=True) if row.letter
    }
    told = await eventually(lambda: _letters(publications, letters), within=PLENTY)
    assert letters <= told
    assert {one[0] for one in told} & set(made) == {one[0] for one in letters}
    for condition in ("publications_failed", "publications_paused"):  # the operator is told of both
        found = await publications.sql(f"SELECT array_agg(workspace_id) FROM condition_{condition}(1)")
        assert found == [UUID(WORKSPACE)], condition


async def _letters(
    publications: Publications, wanted: set[tuple[str, str | None, int]]
) -> set[tuple[str, str, int]] | None:
    """Publication, error and calls of each dead letter that is in the stream."""
    client = await nats.connect(publications.system.places["nats_url"])
    try:
        subject = f"{publications.topology.commands}.dlq"
        subscription = await client.jetstream().subscribe(subject, ordered_consumer=True)
        found: set[tuple[str, str, int]] = set()
        while (await subscription.consumer_info()).num_pending or subscription.pending_msgs:
            letter = json.loads((await subscription.next_msg(timeout=2)).data)
            found.add((letter["publication_id"], letter["error_type"], letter["attempts"]))
        return found if wanted <= found else None
    finally:
        await client.close()


async def _all(*rows: Awaitable[Any], names: tuple[str, ...]) -> list[Any]:
    """Each to its end, whatever becomes of the others."""
    ended = await asyncio.gather(*rows, return_exceptions=True)
    failed = {name: end for name, end in zip(names, ended, strict=True) if isinstance(end, BaseException)}
    assert failed == {}, "\n".join(f"{name}: {type(end).__name__}: {end}" for name, end in failed.items())
    return list(ended)


async def test_every_row_of_the_tables_of_publications(start_system: StartSystem, nats_namespace: str) -> None:
    publications = Publications(await start_system(**FAST, **ENVIRONMENT), Topology(nats_namespace))
    await publications.prepare()
    media = {
        f"{' '.join(row.media)}, buttons: {has_buttons}": row.check(publications, has_buttons=has_buttons)
        for row, has_buttons in itertools.product(MEDIA, (False, True))
    }
    content = {name: row.check(publications) for name, row in CONTENT.items()}
    others = {f"{one.__name__} {nth}": one(publications) for nth, one in enumerate(OTHERS)}
    rows = media | content | others | {"errors": check_errors(publications)}

    await _all(*rows.values(), names=tuple(rows))
