"""Names in documents are names of today: functions, tables, columns, variables, metrics, tests, modules and folders."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from docs.support.documents import NOT_OURS, ROOT, documents, read

PACKAGES = (
    "libs/adapters",
    "libs/runtime",
    "services/bot",
    "services/dispatcher",
    "services/ingest",
    "services/monitor",
)
HISTORY = {"CHANGELOG.md"}
"""It may name what is gone."""
PLACEHOLDER = re.compile("NNNN|AP0nn")

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"(?<![\w.…*])[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?![\w…*]|_)")
_SOURCES = {".py", ".sql", ".js", ".toml", ".yml", ".yaml", ".svg", ".sh", ".json", ""}


@cache
def known() -> frozenset[str]:
    """Every word of the code and its tests, and every name of a file or a folder, in small letters."""
    found: set[str] = set()
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if not name.startswith(".") and name not in NOT_OURS]
        found |= {word for name in (*inner, *names) for word in re.findall(r"\w+", name)}
        for name in names:
            path = Path(folder) / name
            if path.suffix in _SOURCES and path != Path(__file__):
                found |= set(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
    return frozenset(word.lower() for word in found)


def names(text: str) -> Iterator[str]:
    """What stands between backticks and has an underscore, so that it can be nothing but a name."""
    for code in _CODE.findall(_FENCE.sub("", text)):
        yield from _NAME.findall(code)


def exists(name: str) -> bool:
    """A variable is a field of a config, also with ``_FILE``; Prometheus adds ``_total`` to a counter."""
    small = name.lower()
    return {
        small,
        small.removesuffix("_total"),
        small.removeprefix("autopost_").removesuffix("_file"),
    } & known() != set()


def test_every_name_in_a_document_exists() -> None:
    gone = [
        f"{document.relative_to(ROOT)}: {name}"
        for document in documents()
        if document.name not in HISTORY
        for name in names(document.read_text(encoding="utf-8"))
        if not PLACEHOLDER.match(name) and not exists(name)
    ]

    assert gone == []
    assert sum(len(list(names(document.read_text(encoding="utf-8")))) for document in documents()) > 500


@pytest.mark.parametrize(
    ("name", "there"), [("claim_deliveries", True), ("AUTOPOST_NATS_URL", True), ("given_up_at_all", False)]
)
def test_a_name_that_is_gone_is_seen(name: str, there: bool) -> None:
    (found,) = names(f"the function `{name}(id)`\n```\n`other_name`\n```")

    assert exists(found) is there


@pytest.mark.parametrize("package", PACKAGES)
def test_the_readme_of_a_package_names_each_of_its_rooms(package: str) -> None:
    (code,) = (ROOT / package).glob("autopost_*")
    rooms = {path.name for path in code.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    words = set(re.findall(r"\w+", read(f"{package}/README.md")))

    assert rooms - words == set()


def test_the_readme_of_the_database_names_each_folder_of_functions() -> None:
    folders = {path.name for path in (ROOT / "db" / "functions").iterdir()}
    listed = re.findall(r"^\| (`.+?`) \|", read("db/README.md"), re.MULTILINE)

    assert sorted(word for cell in listed for word in re.findall(r"\w+", cell)) == sorted(folders)
