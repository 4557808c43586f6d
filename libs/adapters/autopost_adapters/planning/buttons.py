"""Check the buttons of a post against the limits of a platform."""

from collections.abc import Iterator, Sequence

import msgspec
from autopost_contracts.payload import Button
from autopost_contracts.plan import Problem

from autopost_adapters.markup.links import has_public_host, shown, wrong_address
from autopost_adapters.markup.visible import is_visible
from autopost_adapters.planning.limits import ButtonLimits

Rows = Sequence[Sequence[Button]]


def button_problems(rows: Rows, limits: ButtonLimits) -> list[Problem]:
    if not rows:
        return []
    return [*_count_problems(rows, limits), *(problem for row in _rows(rows, limits) for problem in row)]


def _count_problems(rows: Rows, limits: ButtonLimits) -> Iterator[Problem]:
    if len(rows) > limits.rows:
        yield Problem("too_many_buttons", "buttons", f"{len(rows)} rows of buttons, at most {limits.rows} are allowed")
    elif (total := sum(map(len, rows))) > limits.total:
        yield Problem("too_many_buttons", "buttons", f"{total} buttons, at most {limits.total} are allowed")
    elif limits.encoded is not None and (size := len(msgspec.json.encode(rows))) > limits.encoded:
        yield Problem("too_many_buttons", "buttons", f"{size} bytes of buttons, at most {limits.encoded} are allowed")


def _rows(rows: Rows, limits: ButtonLimits) -> Iterator[Iterator[Problem]]:
    for index, row in enumerate(rows):
        yield _row_problems(row, f"buttons[{index}]", limits)


def _row_problems(row: Sequence[Button], field: str, limits: ButtonLimits) -> Iterator[Problem]:
    if len(row) > limits.per_row:
        yield Problem("too_many_buttons", field, f"{len(row)} buttons in a row, at most {limits.per_row} are allowed")
    for button in row:
        if not is_visible(button.text):
            yield Problem("validation_failed", field, "a button has no visible text")
        if wrong := _wrong_url(button.url, limits):
            yield Problem("validation_failed", field, wrong)


def _wrong_url(url: str, limits: ButtonLimits) -> str | None:
    if wrong := wrong_address(url, limits.schemes):
        return wrong
    if limits.hosts_have_dots and not has_public_host(url):
        return f"{shown(url)} has no public host"
    return None
