import pytest
from autopost_bot.engine.accept import read_value
from autopost_bot.engine.rules import Accept


@pytest.mark.parametrize(
    ("accept", "text", "value"),
    [
        (Accept("order"), "заказ №12345", "12345"),
        (Accept("order"), "12345, а нет, 67890", "12345"),
        (Accept("order"), "2 товара из заказа 445566", "445566"),
        (Accept("order"), "123", None),
        (Accept("order"), "1234567890123", None),
        (Accept("order", digits=(3, 3)), "123", "123"),
        (Accept("order"), "не помню", None),
        (Accept("number", min=1, max=10), "штук 5", "5"),
        (Accept("number", min=1, max=10), "50, нет, 7,5", "7.5"),
        (Accept("number"), "ни одного", None),
        (Accept("phone"), "мой 8 (999) 123-45-67", "+79991234567"),
        (Accept("phone"), "+375 29 123 45 67", "+375291234567"),
        (Accept("phone"), "12345", None),
        (Accept("email"), "пишите на ivan.petrov@mail.example", "ivan.petrov@mail.example"),
        (Accept("email"), "почта @ точка", None),
        (Accept("choice", options=("Да", "Нет")), "нет", "Нет"),
        (Accept("choice", options=("Да", "Нет")), "2", "Нет"),
        (Accept("choice", options=("Да", "Нет")), "наверное", None),
        (Accept("text", min=3), "да", None),
        (Accept("text", max=3), "может быть", None),
        (Accept("text"), "👍", "👍"),
        (None, "  брак \n совсем ", "брак совсем"),
        (None, "", None),
    ],
)
def test_a_value_is_found_in_a_text_or_refused(accept, text, value):
    assert read_value(accept, text) == value


def test_an_attachment_without_words_is_a_value_only_where_the_rule_says_so():
    assert read_value(Accept("text", attachments=True), "", ("image",)) == "image"
    assert read_value(Accept("text"), "", ("image",)) is None


@pytest.mark.parametrize("text", ["1" * 4000, "a." * 2000 + "@", "+" * 4000, "8 " * 2000, "@" * 4000])
def test_hostile_texts_are_read_quickly(text):
    for kind in ("text", "number", "order", "phone", "email", "choice"):
        read_value(Accept(kind), text)
