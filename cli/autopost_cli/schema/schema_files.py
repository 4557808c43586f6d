"""The SQL files under `db/`: their location, order and checksums."""

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
    installed = Path(__file__).parents[1] / "_db"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[3] / "db"


def tables() -> list[SchemaFile]:
    """Types, tables and indexes: what an empty database gets."""
    return list(_read("tables"))


def tables_checksum() -> str:
    """Of all tables together, as `schema.sql` writes it: psql drops the last line break."""
    text = "".join(file.text for file in tables())
    return sha256(text.removesuffix("\n").encode()).hexdigest()


def migrations() -> list[SchemaFile]:
    return list(_read("migrations"))


def released() -> bool:
    """Whether there is a release, so that a database of an older version may exist."""
    return any((folder() / "releases").glob("*.sql"))


def objects() -> list[SchemaFile]:
    """Functions, then the views over them; grants come last and are applied with any change."""
    return [*_read("functions"), *_read("views")]


def grants() -> list[SchemaFile]:
    return list(_read("grants"))


def function(name: str) -> SchemaFile:
    """Find a function by its name, in any folder."""
    [path] = (folder() / "functions").glob(f"*/{name}.sql")
    return _file(path)


def seed() -> str:
    return (folder() / "seed.sql").read_text()


def statement(name: str) -> str:
    """The statement of a file under `db/`, by its path without `.sql`."""
    return (folder() / f"{name}.sql").read_text()


def _read(kind: str) -> Iterator[SchemaFile]:
    for path in sorted((folder() / kind).rglob("*.sql")):
        yield _file(path)


def _file(path: Path) -> SchemaFile:
    return SchemaFile(path.relative_to(folder()).as_posix(), path.read_text())
