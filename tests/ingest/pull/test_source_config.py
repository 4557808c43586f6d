"""An unknown field of a source is refused, and the nearest known one is named."""

from typing import Any

import pytest
from autopost_ingest.pull.source_config import Misconfigured, read_source

API = {"url": "https://a.example/", "fields": {"title": "t"}}


@pytest.mark.parametrize(
    ("kind", "config", "advice"),
    [
        ("rss", {"url": "https://a.example/", "tag": []}, "did you mean `tags`?"),
        ("api", API | {"fields": {"titel": "t"}}, "did you mean `title`?"),
        ("api", API | {"routing": {"channel": []}}, "did you mean `channels`?"),
        ("api", API | {"auth": {"ref": "a", "zzz": 1}}, "known: ref, scheme"),
    ],
)
def test_an_unknown_field_of_a_source_names_the_nearest(kind: str, config: dict[str, Any], advice: str) -> None:
    with pytest.raises(Misconfigured, match="unknown field") as refused:
        read_source(kind, config)

    assert str(refused.value).endswith(advice)


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Misconfigured, match="known kinds: rss, api, db"):
        read_source("csv", {})
