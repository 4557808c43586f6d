"""``==`` ends at the first letter that differs and so tells how many were right; ``compare_digest`` does not."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECRET = re.compile(r"secret|signature|password|token|digest", re.IGNORECASE)


def compared(source: str) -> Iterator[str]:
    """Comparisons one side of which is, by its name, a secret."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
            sides = (node.left, *node.comparators)
            known = any(isinstance(side, ast.Constant) for side in sides)  # as in: is there one at all
            if not known and any(SECRET.search(_name(side)) for side in sides):
                yield f"{node.lineno}: {ast.unparse(node)}"


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


@pytest.mark.parametrize("source", ["told == self._secret", "x = signature != other.signature", "secret_hash == found"])
def test_such_a_comparison_is_seen(source: str) -> None:
    assert list(compared(source))


@pytest.mark.parametrize("folder", ["services", "libs", "cli"])
def test_no_secret_is_compared_with_equals(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in (ROOT / folder).rglob("*.py")
        for line in compared(path.read_text())
    ]

    assert found == []
