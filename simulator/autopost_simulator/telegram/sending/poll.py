"""sendPoll: a question with its options. Nobody votes."""

import secrets
from typing import Any

import msgspec

from autopost_simulator.telegram.markup.formatting import Formatted
from autopost_simulator.telegram.refusal import TelegramError
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.text import finished

LONGEST_QUESTION = 300
LONGEST_OPTION = 100
MOST_OPTIONS = 12
_FLAGS = ("allows_multiple_answers", "is_closed", "members_only")


def read_poll(params: Params) -> dict[str, Any]:
    """The field ``poll`` of the message."""
    question = finished(Formatted(params.text("question"), []), may_be_empty=False).text
    if len(question) > LONGEST_QUESTION:
        raise _bad(f"poll question length must not exceed {LONGEST_QUESTION}")
    kind = params.text("type") or "regular"
    if kind not in ("regular", "quiz"):
        raise _bad("unsupported poll type specified")
    options = _options(params)
    poll: dict[str, Any] = {
        "id": str(secrets.randbits(62) + 1),
        "question": question,
        "options": [{"persistent_id": str(n), "text": text, "voter_count": 0} for n, text in enumerate(options)],
        "total_voter_count": 0,
        "is_anonymous": params.flag("is_anonymous") if params.text("is_anonymous") else True,
        "allows_revoting": params.flag("allows_revoting") if params.text("allows_revoting") else kind == "regular",
        "type": kind,
        **{name: params.flag(name) for name in _FLAGS},
    }
    return poll | (_correct(params, len(options)) if kind == "quiz" else {})


def _options(params: Params) -> list[str]:
    try:
        given = params.structure("options")
    except msgspec.DecodeError:
        raise _bad("can't parse options JSON object") from None
    if given is None:
        raise _bad("can't parse options JSON object")
    if not isinstance(given, list):
        raise _bad("expected an Array of String as options")
    texts = [finished(Formatted(_option(option), []), may_be_empty=False).text for option in given]
    if not 1 <= len(texts) <= MOST_OPTIONS:
        raise _bad(
            "poll must have at least one answer option"
            if not texts
            else f"poll can't have more than {MOST_OPTIONS} options"
        )
    if any(len(text) > LONGEST_OPTION for text in texts):
        raise _bad(f"poll options length must not exceed {LONGEST_OPTION}")
    return texts


def _option(option: object) -> str:
    if isinstance(option, dict) and isinstance(option.get("text"), str):
        return str(option["text"])
    if isinstance(option, str):
        return option
    raise _bad("expected an option to be of type String")


def _correct(params: Params, count: int) -> dict[str, Any]:
    given = params.structure("correct_option_ids")
    chosen = given if isinstance(given, list) else [params.integer("correct_option_id")]
    numbers = [number for number in chosen if isinstance(number, int) and 0 <= number < count]
    if not chosen or len(numbers) != len(chosen):
        raise _bad("wrong correct option ID specified")
    single = {"correct_option_id": numbers[0]} if len(numbers) == 1 else {}
    return {"correct_option_ids": numbers, **single}


def _bad(reason: str) -> TelegramError:
    return TelegramError(400, f"Bad Request: {reason}")
