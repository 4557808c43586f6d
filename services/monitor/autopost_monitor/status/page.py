"""The status page as one HTML document without external files; all values are escaped.

It works without its script, which only reloads it. Style and script are inline, and the Content-Security-Policy
contains their hashes, so that injected code would not run.
"""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from autopost_monitor.status import page_sections as sections
from autopost_monitor.status.gateway import Viewer
from autopost_monitor.status.page_markup import Markup, joined, tag, trusted
from autopost_monitor.status.page_words import at

FILES = Path(__file__).with_name("page_files")
STYLE = (FILES / "look.css").read_text(encoding="utf-8")
SCRIPT = (FILES / "live.js").read_text(encoding="utf-8")
MOST_WORKSPACES = 50


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_hash(SCRIPT)}",
        f"style-src {_hash(STYLE)}",
        "img-src data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Cookie, Authorization",
}


def status_page(report: Mapping[str, Any], viewer: Viewer) -> str:
    now = at(report["at"]) or datetime.now(UTC)
    workspaces = report["workspaces"]
    names = {one["workspace_id"]: one["name"] for one in workspaces}
    body = (
        _top(_state(now, viewer)),
        tag(
            "main",
            tag("section", sections.alerts(report["alerts"], names, now), sections.notices(report["notices"], now)),
            tag("section", sections.tiles(workspaces, report["staged"], report["relay"], now)),
            [_workspace(one, report, now, alone=len(workspaces) == 1) for one in _worst_first(workspaces)],
        ),
        tag("script", trusted(SCRIPT)),
    )
    return _document("Status", *body, refresh=True)


def login_page(problem: str = "") -> str:
    """The form for a status token."""
    form = tag(
        "form",
        tag("h2", "Status"),
        tag("p", problem, cls="problem", role="alert") if problem else None,
        tag(
            "label",
            "Status token",
            tag("input", type="password", name="token", autocomplete="current-password", required=True, autofocus=True),
        ),
        tag("button", "Show", type="submit"),
        tag("small", "To create a token: ", tag("code", "autopost auth status-token create")),
        method="post",
        action="/status/login",
        cls="card login",
    )
    return _document("Status", tag("main", form))


def _state(now: datetime, viewer: Viewer) -> Markup:
    until = f"this token is valid until {viewer.expires_at:%Y-%m-%d %H:%M} UTC"
    words = f"as of {now:%H:%M:%S} UTC · {viewer.label}"
    return tag("p", words, id="state", cls="state", role="status", title=until)


def _top(state: Markup) -> Markup:
    leave = tag("form", tag("button", "Sign out", cls="quiet"), method="post", action="/status/logout")
    return tag("header", tag("h1", "autopost"), state, leave, cls="top")


def _workspace(workspace: Mapping[str, Any], report: Mapping[str, Any], now: datetime, *, alone: bool) -> Markup:
    groups = [one for one in report["rates"] if one["workspace_id"] == workspace["workspace_id"]]
    paused = "" if workspace["status"] == "active" else f" · {workspace['status']}"
    title = joined(workspace["name"], tag("small", paused)) if paused else workspace["name"]
    link = title if alone else tag("a", title, href=f"/status?workspace={workspace['workspace_id']}")
    return tag(
        "section",
        tag("h2", link),
        tag("div", sections.rates(groups, now), sections.errors(workspace["top_errors"], now), cls="pair"),
        sections.bots([one for one in report["bots"] if one["workspace_id"] == workspace["workspace_id"]], now),
        sections.publications(
            [one for one in report["publications"] if one["workspace_id"] == workspace["workspace_id"]], now
        ),
        sections.channels(workspace["channels"], now, all_of_them=alone),
    )


def _worst_first(workspaces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def trouble(one: dict[str, Any]) -> int:
        waiting: int = one["counts"].get("retry", 0) + one["counts"].get("dead", 0) - one["skipped"]
        return -waiting - len([channel for channel in one["channels"] if channel["state"] in ("paused", "disabled")])

    return sorted(workspaces, key=trouble)[:MOST_WORKSPACES]


def _document(title: str, *body: object, refresh: bool = False) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="robots", content="noindex"),
        tag("title", f"{title} · autopost"),
        tag("link", rel="icon", href="data:,"),
        tag("style", trusted(STYLE)),
        tag("noscript", tag("meta", http_equiv="refresh", content="10")) if refresh else None,
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"
