"""Replies go out through the adapter of posts, and updates come in by the webhook alone."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATHS = re.compile(r"""["']/(messages|answers|subscriptions|updates|uploads|me)["'?]""")


def named() -> set[tuple[str, str]]:
    return {
        (str(path.parent.relative_to(ROOT)), match[1])
        for room in ("libs", "services", "cli")
        for path in (ROOT / room).rglob("*.py")
        for match in PATHS.finditer(path.read_text())
    }


def test_only_the_adapter_knows_the_paths_of_max_and_nobody_polls_for_updates() -> None:
    assert {folder for folder, _ in named()} == {"libs/adapters/autopost_adapters/max"}
    assert {path for _, path in named()} == {"messages", "answers", "subscriptions", "uploads", "me"}
