"""What `autopost verify` found, and how it is told."""

from collections import Counter
from typing import Any

import click
import msgspec

from autopost_cli.operate import print_table
from autopost_cli.operate_gateway import Row

COLUMNS = ("workspace", "kind", "delivery_id", "message_id", "channel_id", "event_id", "stream_seq", "events", "row")


class Report(msgspec.Struct, kw_only=True):
    """``differences`` is bounded; ``found`` counts them all, by kind as far as they are listed."""

    most: int
    checked: Counter[str] = msgspec.field(default_factory=Counter)
    found: int = 0
    differences: list[Row] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.found == 0

    def add(self, what: str, checked: int, found: int, differences: list[Row], **where: Any) -> None:
        self.checked[what] += checked
        self.found += found
        self.differences += [{**where, **one} for one in differences[: self.most - len(self.differences)]]

    def as_json(self) -> Row:
        return {
            "holds": self.holds,
            "checked": self.checked,
            "found": self.found,
            "differences": self.differences,
            "notes": self.notes,
        }

    def print(self) -> None:
        for note in self.notes:
            click.echo(note)
        click.echo("Looked at " + ", ".join(f"{count:,} {what}" for what, count in self.checked.items()) + ".")
        if self.holds:
            click.echo("All of it holds: every delivery is what its events say.")
            return
        click.secho(f"{self.found:,} differences.", bold=True)
        print_table(self.differences, COLUMNS)
        if self.found > len(self.differences):
            click.echo(f"… and {self.found - len(self.differences):,} more (--most).")
