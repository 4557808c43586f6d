"""The SQL under `db/`: where it lies, in which order it is applied, and what has changed."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct


class SchemaFile(Struct, frozen=True):
    """A migration is applied once and never changes; an object is applied again whenever its text changes."""

    name: str
    text: str

    @property
    def checksum(self) -> str:
        return sha256(self.text.encode()).hexdigest()


def folder() -> Path:
    """`db/` of the checkout, or the copy inside the installed package."""
    installed = Path(__file__).parent / "_db"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "db"


def migrations() -> list[SchemaFile]:
    return list(_read("migrations"))


def objects() -> list[SchemaFile]:
    """Functions, then the views over them; grants come last and are applied with any change."""
    return [*_read("functions"), *_read("views")]


def grants() -> list[SchemaFile]:
    return list(_read("grants"))


def seed() -> str:
    return (folder() / "seed.sql").read_text()


def statement(name: str) -> str:
    """One statement of `db/`, by its path without the ending."""
    return (folder() / f"{name}.sql").read_text()


def schema() -> str:
    """`schema.sql` with every `\\ir FILE` line replaced by that file."""
    lines = (folder() / "schema.sql").read_text().splitlines()
    return "\n".join((folder() / line.split()[1]).read_text() if line.startswith("\\ir ") else line for line in lines)


def _read(kind: str) -> Iterator[SchemaFile]:
    for path in sorted((folder() / kind).glob("*.sql")):
        yield SchemaFile(f"{kind}/{path.name}", path.read_text())
