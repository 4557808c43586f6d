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
    most = _most_in(row, limits)
    if len(row) > most:
        yield Problem("too_many_buttons", field, f"{len(row)} buttons in a row, at most {most} are allowed")
    for button in row:
        if button.kind not in limits.kinds:
            yield Problem("buttons_unsupported", field, f"{button.kind} buttons do not exist on this platform")
        elif not is_visible(button.text):
            yield Problem("validation_failed", field, "a button has no visible text")
        elif limits.text is not None and len(button.text) > limits.text:
            yield Problem("validation_failed", field, f"the text of a button is longer than {limits.text} characters")
        elif wrong := _wrong_effect(button, limits):
            yield Problem("validation_failed", field, wrong)


def _most_in(row: Sequence[Button], limits: ButtonLimits) -> int:
    has_link = any(button.kind == "link" for button in row)
    return limits.per_row if has_link or limits.per_row_without_links is None else limits.per_row_without_links


def _wrong_effect(button: Button, limits: ButtonLimits) -> str | None:
    """What is wrong with what the button does."""
    match button.kind:
        case "link":
            return _wrong_url(button.url, limits)
        case "say":
            return None
        case "callback":
            if not button.payload:
                return "a callback button has no payload"
            if limits.payload is not None and len(button.payload) > limits.payload:
                return f"the payload of a button is longer than {limits.payload} characters"
            return None


def _wrong_url(url: str, limits: ButtonLimits) -> str | None:
    if wrong := wrong_address(url, limits.schemes):
        return wrong
    if limits.hosts_have_dots and not has_public_host(url):
        return f"{shown(url)} has no public host"
    return None
