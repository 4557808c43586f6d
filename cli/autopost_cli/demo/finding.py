"""What a criterion did, expected and saw."""

from msgspec import Struct, field


class Finding(Struct, kw_only=True):
    """The actions, the expectations, the observations, and the checks that failed."""

    title: str
    done: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    database: list[str] = field(default_factory=list)
    simulator: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.failed

    def check(self, promise: str, holds: bool) -> None:
        self.expected.append(promise)
        if not holds:
            self.failed.append(promise)
