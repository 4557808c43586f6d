"""Check the query of a request. Unknown parameters are refused: ignoring them would look as if they took effect."""

from collections.abc import Mapping

from aiohttp import web
from autopost_runtime.config.suggestions import suggest
from autopost_runtime.http.web import HttpProblem
from autopost_runtime.secrets.redaction import quoted

PARAMETERS = {"dry_run": "1", "media": "skip"}
"""Parameters of a dry run, each with its only value."""

HINTS = frozenset({"workspace_id"})
"""Accepted and ignored: the endpoint alone identifies the tenant."""


def check_query(query: Mapping[str, str], known: Mapping[str, str]) -> None:
    """``known``: each parameter with its only value."""
    for name, value in query.items():
        if name in HINTS:
            continue
        if name not in known:
            raise HttpProblem(400, "Bad Request", _unknown(name), field=quoted(name))
        if value != known[name]:
            raise HttpProblem(400, "Bad Request", f"must be {known[name]}", field=name)


def query_to_sign(request: web.Request) -> str:
    """The raw query; empty when it has only hints."""
    return "" if HINTS.issuperset(request.query) else request.rel_url.raw_query_string


def _unknown(name: str) -> str:
    return "only valid with dry_run=1" if name in PARAMETERS else f"unknown parameter; {suggest(name, PARAMETERS)}"
