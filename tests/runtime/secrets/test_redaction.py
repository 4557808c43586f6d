"""What must not leave the process: secrets anywhere, and nobody's number or address but in raw payloads."""

import string
from datetime import UTC, datetime
from uuid import UUID

import pytest
from autopost_runtime.secrets.redaction import beginning, mask_secret, quoted, redact, redact_secrets
from harness.redaction_samples import CUT, HARMLESS, PEOPLE, PEOPLE_IN_LINKS, SECRETS
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("person", PEOPLE)
def test_people_are_not_told_of_but_stay_in_raw_payloads(person: str) -> None:
    text = f"Bad Request: {person}, is not known"

    assert redact(text) == "Bad Request: ***, is not known"
    assert redact_secrets(text) == text


@pytest.mark.parametrize("written", ['to"k/e n+1', "to%22k%2Fe%20n%2B1", "to%22k/e%20n%2B1", 'to\\"k/e n+1'])
def test_a_known_secret_is_masked_however_it_is_written(written: str) -> None:
    text = f"no access for {written}, sorry"

    assert mask_secret(text, 'to"k/e n+1') == "no access for ***, sorry"
    assert mask_secret(text.encode(), 'to"k/e n+1') == b"no access for ***, sorry"


def test_an_empty_secret_masks_nothing() -> None:
    assert mask_secret("text", "") == "text"


@pytest.mark.parametrize(("text", "clean"), SECRETS.items())
def test_secrets_go_everywhere(text: str, clean: str) -> None:
    assert redact(text) == redact_secrets(text) == clean


@pytest.mark.parametrize("text", HARMLESS)
def test_ids_times_and_places_stay(text: str) -> None:
    assert redact(text) == text


@given(st.uuids(), st.integers(0, 2**128 - 1), st.datetimes(timezones=st.just(UTC)))
def test_no_id_or_time_is_taken_for_a_number_of_somebody(one: UUID, trace: int, at: datetime) -> None:
    text = f"{one} {trace:032x} {at.isoformat()} -100{one.int % 10**10:010d}"

    assert redact(text) == text


_AROUND = st.text(string.ascii_letters + " ,;!()<>\n", max_size=30)


@given(_AROUND, st.sampled_from(PEOPLE), _AROUND)
def test_people_are_found_wherever_they_stand(before: str, person: str, after: str) -> None:
    """At the edges of words: what is glued to other letters is no longer a number."""
    assert person not in redact(f"{before} {person} {after}")


@given(_AROUND, st.from_regex(r"[1-9][0-9]{6,9}:[A-Za-z0-9_-]{35}", fullmatch=True), _AROUND)
def test_a_token_is_found_wherever_it_stands(before: str, token: str, after: str) -> None:
    assert token.partition(":")[2] not in redact(f"{before} {token} {after}")


@given(st.text(max_size=200))
def test_a_text_that_was_cleaned_is_clean(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "unit",
    [
        "\\",
        '"',
        '"token": "',
        "x-",
        "a@",
        "8 (900",
        "://a:",
        "a.",
        "1",
        "+7 ",
        "http://",
        "http://a",
        "&sig=",
        "%3F",
        "token%3D",
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    """What is quadratic in its length would take minutes here; the test run's own limit sees to that."""
    text = f":={unit * (200_000 // len(unit))}"

    assert redact(text).startswith(":=")


def test_what_is_quoted_is_short_redacted_and_one_line() -> None:
    assert quoted("see https://ann:hush@example.com/?token=hush\nbye") == "see https://***@example.com/?token=***�bye"
    assert quoted("x" * 80) == "x" * 80
    assert quoted("x" * 81) == "x" * 79 + "…"
    assert len(quoted("x" * 10_000_000)) == 80


def test_a_secret_that_is_longer_than_a_quotation_is_not_shown_in_part() -> None:
    password = "hush" * 500

    assert "hush" not in quoted(f"https://ann:{password}@example.com/")
    assert "hush" not in quoted("x" * 70 + f" https://ann:{password}@example.com/")


@pytest.mark.parametrize("text", CUT, ids=range(len(CUT)))
def test_a_secret_that_ends_behind_what_is_looked_at_is_not_shown_in_part(text: str) -> None:
    assert "hush" not in quoted(text, 500)
    assert "hush" not in beginning(text, 500)


@pytest.mark.parametrize("link", PEOPLE_IN_LINKS)
def test_people_in_links_are_not_told_of(link: str) -> None:
    assert redact(link) == PEOPLE_IN_LINKS[link]
