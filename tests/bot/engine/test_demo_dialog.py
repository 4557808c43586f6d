"""The dialog of `autopost demo`, by the rules of the seed alone."""

from autopost_cli.demo.conversation import DIALOG
from bot.support.shop_chat import Chat, shop_with


def judged(chat):
    turns = [chat.say(exchange.said) for exchange in DIALOG]
    return [
        turn.log.meta["outcome"] == exchange.outcome
        and turn.log.state_after == exchange.state
        and all(word in turn.reply.text for word in exchange.contains)
        for turn, exchange in zip(turns, DIALOG, strict=True)
    ]


def test_the_seed_answers_the_demo_as_the_demo_expects():
    assert all(judged(Chat()))


def test_the_sabotage_is_noticed():
    assert not all(judged(Chat(shop_with(without=("returns_order",)))))
