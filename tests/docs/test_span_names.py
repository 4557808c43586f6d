"""A span of ours is named like the function that it measures: one search finds both."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from autopost_cli.schema import schema_files
from docs.support.documents import ROOT

CODE = ("libs", "services")


def spans(tree: ast.AST) -> Iterator[str]:
    """Names that are written out. Those of requests and messages follow OpenTelemetry: ``POST /v1/posts``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            name = node.args[0]
            if node.func.attr.endswith("start_as_current_span") and isinstance(name, ast.Constant):
                yield str(name.value)


def functions(tree: ast.AST) -> set[str]:
    return {
        node.name.lstrip("_") for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text())


def unnamed() -> list[str]:
    """Spans without a function of their name, in their module or in SQL that services call."""
    sql = {Path(file.name).stem for file in schema_files.objects() if "/facade/" not in file.name}
    return [f"{path}: {name}" for path, tree in trees() for name in spans(tree) if name not in functions(tree) | sql]


def test_each_span_is_named_like_a_function_of_its_module_or_of_the_database() -> None:
    assert unnamed() == []
    assert sum(len(list(spans(tree))) for _, tree in trees()) >= 5


@pytest.mark.parametrize(("name", "found"), [("deliver", True), ("materialize", False)])
def test_a_span_without_its_function_is_seen(name: str, found: bool) -> None:
    tree = ast.parse(f"def deliver():\n    with tracer().start_as_current_span('{name}'): ...")

    assert [span in functions(tree) for span in spans(tree)] == [found]
