"""Private names of aiohttp: one module of ours uses them, and the installed aiohttp still has each of them."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import autopost_runtime
import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from autopost_runtime.http import server

ROOT = Path(__file__).parents[3]
SOURCES = [*(ROOT / "libs").rglob("*.py"), *(ROOT / "services").rglob("*.py")]
ONLY = Path(autopost_runtime.__path__[0]) / "http" / "server.py"

USED: dict[type, set[str]] = {
    RequestHandler: {
        *("_handle_request", "_loop", "_messages", "_parser", "_reading_paused"),
        *("_request_count", "_request_in_progress", "_waiter"),
    },
    web.StreamResponse: {"_eof_sent", "_keep_alive", "_payload_writer", "_reason", "_status"},
    web.Application: {"_handle"},
    web.Request: {"_match_info"},
    web.Server: {"_kwargs", "_loop"},
    web.AppRunner: {"_make_server"},
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def names_in(tree: ast.AST) -> set[str]:
    """Private attributes that are read, written or overridden."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    methods = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    fields = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for line in node.body
        for target in (line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)])
        if isinstance(target, ast.Name)
    }
    return {name for name in attributes | methods | fields if is_private(name)}


def private_names_of(kind: type) -> set[str]:
    bases = [base for base in kind.__mro__ if base.__module__.startswith("aiohttp")]
    return set().union(*(names_in(ast.parse(inspect.getsource(inspect.getmodule(base)))) for base in bases))  # type: ignore[arg-type]


def aiohttp_classes(tree: ast.Module) -> Iterator[tuple[ast.ClassDef, set[str]]]:
    """Each class of ours with an aiohttp base, and the private names of that base."""
    imported = {
        alias.asname or alias.name: getattr(__import__(node.module, fromlist=[alias.name]), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("aiohttp")
        for alias in node.names
    }
    imported["aiohttp"] = aiohttp
    for node in ast.walk(tree):
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            kind = eval(ast.unparse(base), dict(imported)) if ast.unparse(base).split(".")[0] in imported else None  # noqa: S307
            if isinstance(kind, type):
                yield node, private_names_of(kind)  # type: ignore[misc]


def private_use(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    modules = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    used = {
        alias.name
        for node in modules
        if str(node.module).startswith("aiohttp")
        for alias in node.names
        if is_private(alias.name)
    }
    for node, names in aiohttp_classes(tree):
        used |= names_in(node) & names
    return used


def test_one_module_alone_uses_private_names_of_aiohttp() -> None:
    users = {file for file in SOURCES if "aiohttp" in file.read_text() and private_use(file)}

    assert users == {ONLY}


@pytest.mark.parametrize("kind", USED, ids=lambda kind: kind.__name__)
def test_the_installed_aiohttp_has_every_private_name_we_use(kind: type) -> None:
    assert USED[kind] - private_names_of(kind) == set()


def test_every_private_name_in_the_module_is_listed() -> None:
    tree = ast.parse(Path(server.__file__).read_text())
    own = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_private(node.attr)
    } | {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_private(node.name)
    }
    listed = set().union(*USED.values())

    assert names_in(tree) - own <= listed
    assert listed <= names_in(tree)
    assert hasattr(server, "_ErrInfo")
