"""The fifth guarantee: a customer of the bot gets one answer to each message, and a scenario keeps its place."""

from typing import Any, NamedTuple

from autopost_cli.demo.finding import Finding
from autopost_cli.demo.system import ConditionNotMet, DemoSystem


class Exchange(NamedTuple):
    said: str
    outcome: str
    """As the line of ``bot_logs`` names it."""
    state: str
    """After the answer."""
    contains: tuple[str, ...] = ()
    """What the answer must say."""


ASK_NUMBER, ASK_REASON = "returns_order", "returns_reason"
DIALOG = (
    Exchange("Хочу вернуть товар", "matched", ASK_NUMBER, ("номер заказа",)),
    Exchange("не помню", "invalid", ASK_NUMBER, ("номер",)),
    Exchange("а доставка платная?", "digressed", ASK_NUMBER, ("Доставляем", "номер заказа")),
    Exchange("отмена", "cancelled", "default"),
    Exchange("Всё-таки хочу вернуть", "matched", ASK_NUMBER, ("номер заказа",)),
    Exchange("заказ №12345", "captured", ASK_REASON, ("12345",)),
    Exchange("брак", "captured", "default", ("12345", "брак")),
)


async def conversed(system: DemoSystem, finding: Finding, sabotage: bool) -> None:
    if sabotage:
        await system.sql("disable_returns")
    customer = system.customer
    greeting = await customer.does("start")
    finding.done.append(f"a customer starts the bot and says: {', '.join(f'«{one.said}»' for one in DIALOG)}")
    answers = [(await customer.answers(1, "the greeting"))[0]]
    try:
        for number, exchange in enumerate(DIALOG, start=2):
            await customer.does("write", text=exchange.said)
            answers = await customer.answers(number, f"an answer to «{exchange.said}»")
    except ConditionNotMet as unmet:
        finding.check(str(unmet), False)
    lines = await system.sql("conversation", str(greeting["chat_id"]))

    _show(finding, lines, answers)
    _judge(finding, lines, answers)


def _show(finding: Finding, lines: list[Any], answers: list[dict[str, Any]]) -> None:
    for line in lines:
        finding.database.append(
            f"{line['outcome']}: rule {line['rule'] or 'none'}, state {line['state_before']} → {line['state_after']}"
        )
    finding.simulator += [f"answer: {answer['text'].splitlines()[-1][:80]}" for answer in answers]
    slowest = max((line["seconds"] or 0 for line in lines), default=0)
    finding.simulator.append(f"{len(answers)} answers; the slowest came {slowest:.2f} s after its message was stored")


def _judge(finding: Finding, lines: list[Any], answers: list[dict[str, Any]]) -> None:
    said = [answer["text"] for answer in answers[1:]]
    finding.check("each message has exactly one answer", len(answers) == len(lines) == len(DIALOG) + 1)
    finding.check(
        "a wrong number, a question in between and a cancel are told apart",
        [line["outcome"] for line in lines] == ["greeted", *(one.outcome for one in DIALOG)],
    )
    finding.check(
        "the scenario keeps its place and ends",
        [line["state_after"] for line in lines[1:]] == [o.state for o in DIALOG],
    )
    finding.check(
        "every answer is to its message, and the last one names number and reason",
        len(said) == len(DIALOG)
        and all(word in text for text, one in zip(said, DIALOG, strict=True) for word in one.contains),
    )
    finding.check("every answer is committed as sent", bool(lines) and all(line["sent"] for line in lines))
