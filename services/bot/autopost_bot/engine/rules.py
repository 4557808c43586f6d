"""Rules and settings as they are stored: rows of ``bot_rules`` and of ``bot_settings``."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Mode = Literal["contains", "words", "choice", "any"]
AcceptKind = Literal["text", "number", "order", "phone", "email", "choice"]


class Pattern(Struct, frozen=True, forbid_unknown_fields=True):
    """Which texts a rule matches."""

    mode: Mode = "contains"
    keywords: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    """The rule does not match a text with one of these; written like keywords of ``words``."""
    options: tuple[str, ...] = ()
    """Of ``choice``; without them the ``say`` buttons of the question are the options."""
    fuzzy: bool = False
    """One typing error in a word of five letters or more is forgiven."""
    layout: bool = False
    """A text without Cyrillic letters is read as if typed on the Russian keyboard."""


class Accept(Struct, frozen=True, forbid_unknown_fields=True):
    """Which values a capture takes."""

    kind: AcceptKind = "text"
    min: float | None = None
    """The least number, or for ``text`` the least number of characters."""
    max: float | None = None
    digits: tuple[int, int] | None = None
    """The fewest and the most digits of an ``order``."""
    options: tuple[str, ...] = ()
    """Of ``choice``."""
    attachments: bool = False
    """A message without words but with an attachment is a value, too: the type of the attachment."""


class RuleButton(Struct, frozen=True, forbid_unknown_fields=True):
    """With ``url`` a link; with ``callback`` a button that works only as long as its question is the current one."""

    text: str
    url: str | None = None
    callback: bool = False


ButtonRow = tuple[str | RuleButton, ...]
"""A string is a button that says its text."""


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule_id: str
    version: int = 1
    intent: str
    pattern: Pattern = Pattern()
    priority: int = 0
    max_turns: Annotated[int, Meta(gt=0)] = 5
    state: str | None = None
    capture: str | None = None
    accept: Accept | None = None
    response_template: str
    invalid_template: str | None = None
    buttons: tuple[ButtonRow, ...] = ()
    next_state: str | None = None
    description: str | None = None


class Fallback(Struct, frozen=True):
    escalate_after: Annotated[int, Meta(ge=1)] = 2
    """This many unmatched messages in a row; the ones before it are clarified."""


class EscalationSettings(Struct, frozen=True):
    mode: Literal["contacts", "handoff"] = "contacts"
    hold: timedelta = timedelta(hours=12)
    """How long the bot is silent after a handoff."""


class Texts(Struct, frozen=True, kw_only=True):
    """Templates; ``None``: nothing is said."""

    shop: str = ""
    """The name of the shop, the variable ``shop`` of the templates."""
    greeting: str | None = None
    clarify: str | None = None
    escalate: str | None = None
    escalate_closed: str | None = None
    cancelled: str | None = None
    invalid: str | None = None
    attachment: str | None = None
    flood: str | None = None
    stale_button: str | None = None
    expired: str | None = None


CANCEL_WORDS = ("отмена", "отменить", "стоп", "сначала", "меню")


class Settings(Struct, frozen=True, kw_only=True):
    """What of ``bot_settings`` a turn is decided by."""

    state_ttl: timedelta = timedelta(minutes=30)
    max_turns: Annotated[int, Meta(gt=0)] = 5
    fallback: Fallback = Fallback()
    escalation: EscalationSettings = EscalationSettings()
    answer_in: tuple[str, ...] = ("dialog",)
    """The kinds of chats that are answered; ingest marks the updates of others."""
    gather: Annotated[int, Meta(ge=0)] = 0
    late_after: timedelta = timedelta(seconds=30)
    timezone: str = "Europe/Moscow"
    hours: dict[str, Any] | None = None
    """When operators are there, written like ``posting_window``; ``None``: always."""
    texts: Texts = field(default_factory=Texts)
    menu: tuple[ButtonRow, ...] = ()
    cancel_words: tuple[str, ...] = CANCEL_WORDS
