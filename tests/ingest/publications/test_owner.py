"""Who is told of a publication: addresses are checked when they are given, because nobody reads the answer later."""

import pytest
from autopost_ingest.errors import InvalidPost
from autopost_ingest.publications.owner import check_owner


@pytest.mark.parametrize(
    "owner",
    [
        *("ann", "Ann (sales): 2nd floor", "telegram:-1001234567890", "telegram:42", "telegram:@shop_ads"),
        *("mailto:ads@shop.example", "https://shop.example/hooks/1?key=2", "https://127.0.0.1:8443/hook"),
    ],
)
def test_addresses_and_names_are_taken(owner):
    check_owner(owner)


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        ("telegram:", "telegram:@name"),
        ("telegram:ann", "telegram:@name"),
        ("mailto:ann", "one address"),
        ("mailto:a@b.example,c@d.example", "one address"),
        ("mailto:a@b.example?cc=c@d.example", "one address"),
        ("mailto:a@b.example\r\nBcc: c@d.example", "one address"),
        ("https://", "a URL like"),
        ("https://shop.example/a b", "a URL like"),
        ("https://shop.example:99999/", "a URL like"),
        ("https://ann:secret@shop.example/", "no user"),
        ("http://shop.example/", "https"),
        ("HTTP://shop.example/", "https"),
    ],
)
def test_what_no_notice_could_reach_is_refused_in_words_and_not_repeated(owner, words):
    with pytest.raises(InvalidPost) as refused:
        check_owner(owner)

    assert refused.value.field == "owner"
    assert words in refused.value.reason
    assert "secret" not in refused.value.reason
