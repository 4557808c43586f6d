"""The report of `autopost verify`."""

from collections import Counter
from typing import Any

import click
import msgspec

from autopost_cli.operate.gateway import Row
from autopost_cli.operate.operate import print_table

COLUMNS = (
    *("workspace", "kind", "delivery_id", "publication_id", "message_id", "channel_id", "event_id", "stream_seq"),
    *("chat", "at", "log_id", "events", "row"),
)


class VerifyReport(msgspec.Struct, kw_only=True):
    """``found`` counts all differences; the list ``differences`` is limited to ``most``."""

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
        click.echo("Checked " + ", ".join(f"{count:,} {what}" for what, count in self.checked.items()) + ".")
        if self.holds:
            click.echo(
                "No differences: every delivery and publication matches its events, every turn of the bot its log."
            )
            return
        click.secho(f"{self.found:,} differences.", bold=True)
        print_table(self.differences, COLUMNS)
        if self.found > len(self.differences):
            click.echo(f"… and {self.found - len(self.differences):,} more; --most shows more.")
