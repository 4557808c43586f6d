import pytest
from autopost_bot.engine.normal_form import LONGEST, as_russian_layout, normal_form


@pytest.mark.parametrize(
    "written",
    [
        "доставка",
        "ДОСТАВКА",
        "  Доставка!!! ",
        "доста\u0301вка",  # stress marked with a combining accent
        "дост\u00e1вка",  # stress marked with a Latin letter
        "дoстaвкa",  # Latin look-alikes
        "дос\u00adтавка",  # soft hyphen
        "доста\u200bвка",
        "«доставка»",
    ],
)
def test_one_word_has_one_normal_form_however_it_is_written(written):
    assert normal_form(written) == "доставка"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("доставкё", "доставке"),
        ("ещё Ёлка", "еще елка"),
        ("мои\u0306 и мой", "мой и мой"),
        ("какой\u00a0адрес", "какой адрес"),
        ("не-подошла_куртка", "не подошла куртка"),
        ("İstanbul", "istanbul"),
        ("ＯＫ①", "ok1"),
        ("заказ №12 345", "заказ 12 345"),
        ("???", ""),
        ("👍", ""),
        ("❤️", ""),
    ],
)
def test_the_normal_form_of(written, expected):
    assert normal_form(written) == expected


def test_only_the_first_thousand_characters_are_looked_at():
    assert normal_form("а" * 5000) == "а" * LONGEST


def test_the_normal_form_of_a_normal_form_is_itself():
    for text in ("Дост\u00e1вка — ЁЖ, мои\u0306 №5", "İ ﬁ ②", "c бп"):
        assert normal_form(normal_form(text)) == normal_form(text)


def test_a_text_without_cyrillic_can_be_read_as_typed_on_the_russian_keyboard():
    assert as_russian_layout("ljcnfdrf") == "доставка"
    assert as_russian_layout(",jkmit jgkfns?") == "больше оплаты"
    assert as_russian_layout("доставка ok") is None
