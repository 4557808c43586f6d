"""What one process knows of a platform that does not answer, before the database does."""

import time

from autopost_adapters.base import AcceptedPart
from autopost_contracts.outcomes import Failed, Scope
from autopost_dispatcher.claim.claim import SendJob
from autopost_dispatcher.send.calls import Calls
from dispatcher.support.sample_claims import job

ACCEPTED = AcceptedPart(provider_ids=("1",))
SILENCE = Failed.transient(Scope.PLATFORM, "http_502", ambiguous=True)
REFUSED = Failed(category=SILENCE.category, scope=Scope.PLATFORM, code="rate_limited", answered=True)
BUSY = Failed.transient(Scope.PLATFORM, "http_503", retry_after_ms=1000, ambiguous=True)
OF_UPLOAD_HOST = Failed.transient(Scope.DELIVERY, "http_502")


def call(calls: Calls, one: SendJob, answer: AcceptedPart | Failed | None) -> None:
    calls.end(one.claim, calls.begin(one.claim), answer)


def claimed(**fields: str) -> SendJob:
    made = job(**fields)
    made.asked_at = time.monotonic()
    return made


def test_what_was_claimed_before_three_deliveries_got_no_answer_goes_back() -> None:
    calls, in_hand = Calls(), claimed()
    beside = claimed(rate_group="other")
    first = claimed()
    for one in (first, first, claimed()):
        call(calls, one, SILENCE)
    assert not calls.is_away(in_hand)

    call(calls, claimed(), SILENCE)

    later, trial = claimed(), claimed()
    trial.is_trial, trial.asked_at = True, 0.0
    assert [calls.is_away(one) for one in (in_hand, beside, later, trial)] == [True, False, False, False]


def test_an_answer_says_that_the_platform_is_there() -> None:
    for answer in (ACCEPTED, REFUSED, None):
        calls, in_hand = Calls(), claimed()
        for _ in range(3):
            call(calls, claimed(), SILENCE)
        call(calls, claimed(), answer)
        assert not calls.is_away(in_hand)
        call(calls, claimed(), SILENCE)
        call(calls, claimed(), SILENCE)
        assert not calls.is_away(in_hand)


def test_what_says_nothing_about_the_platform_does_not_count() -> None:
    for answer in (BUSY, OF_UPLOAD_HOST):
        calls, in_hand = Calls(), claimed()
        for _ in range(5):
            call(calls, claimed(), answer)
        assert not calls.is_away(in_hand)


def test_a_group_hangs_while_its_oldest_call_and_all_after_it_have_no_answer() -> None:
    calls, oldest, other = Calls(), claimed(), claimed()
    calls.begin(claimed(rate_group="other").claim)
    calls.begin(oldest.claim)
    assert list(calls.hanging(60)) == []
    assert [group for _, _, group in calls.hanging(0)] == ["other", "bot"]

    call(calls, other, ACCEPTED)

    assert [group for _, _, group in calls.hanging(0)] == ["other"]


def test_a_call_that_ended_hangs_no_more() -> None:
    for end in (lambda calls, one, number: calls.end(one.claim, number, SILENCE), Calls.forget):
        calls, one = Calls(), claimed()
        number = calls.begin(one.claim)
        end(calls, one if end is not Calls.forget else one.claim, number)  # type: ignore[arg-type]
        assert list(calls.hanging(0)) == []


def test_an_upload_may_take_its_time() -> None:
    calls = Calls()
    calls.begin(claimed().claim, has_bytes=True)
    assert list(calls.hanging(0)) == []


def test_a_group_that_answers_is_not_remembered() -> None:
    calls = Calls()
    for _ in range(1000):
        call(calls, claimed(), ACCEPTED)
    assert calls._groups == {}
