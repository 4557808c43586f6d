"""The page itself: everything is escaped, it is whole without its script, and a browser runs nothing but ours."""

import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from autopost_monitor.__main__ import status_app
from autopost_monitor.config import MonitorConfig
from autopost_monitor.status.gateway import Viewer
from autopost_monitor.status.page import POLICY, login_page, status_page
from autopost_monitor.status.page_markup import tag
from autopost_runtime.http.web import serve
from autopost_runtime.postgres.pool import open_database
from db.support.builders import Tenant
from db.support.operators import Operator, dead
from harness.browser import PATIENCE, browsing
from harness.databases import Database
from harness.redaction_samples import TOKEN
from monitor.support.alert_targets import AT
from monitor.support.status_site import OPERATOR, OURS, issue
from playwright.async_api import Page, expect

EVIL = """"><script>alert('x')</script><img src=x onerror=alert(1)>&amp;' {{7*7}}"""
VIEWER = Viewer(label="ann", workspace=None, expires_at=AT)


def channel(**fields: Any) -> dict[str, Any]:
    usual = {"channel_id": "c", "platform": "telegram", "title": "News", "state": "open", "reason": None}
    usual |= {"until": None, "waiting": 0, "held": 0, "sending": 0, "oldest_due_at": None, "error_streak": 0}
    return usual | fields


def report(**fields: Any) -> dict[str, Any]:
    workspace = {
        "workspace_id": "0de00000-0000-4000-8000-000000000001",
        "name": "demo",
        "status": "active",
        "counts": {"queued": 1200, "claimed": 0, "sending": 2, "retry": 3, "dead": 4, "failed_permanent": 5},
        "held": 1,
        "skipped": 1,
        "oldest_due": {"channel_id": "c", "due_at": "2026-11-16T12:20:00+00:00"},
        "activity": {},
        "top_errors": [],
        "channels": [channel()],
    }
    usual: dict[str, Any] = {"at": AT.isoformat(), "window": "00:10:00", "workspaces": [workspace], "rates": []}
    usual |= {
        "bots": [],
        "publications": [],
        "staged": [],
        "alerts": [],
        "notices": [],
        "relay": {"seconds": 0.5, "events": 3},
    }
    return usual | fields


def test_text_is_escaped_wherever_it_stands() -> None:
    made = str(tag("p", EVIL, title=EVIL))

    assert made.count("<") == 2
    assert made.count('"') == 2


def test_what_is_no_content_is_refused_rather_than_shown() -> None:
    with pytest.raises(TypeError):
        tag("p", object())


def test_nothing_that_others_wrote_becomes_markup() -> None:
    """Titles, reasons, codes, names, groups, labels, causes, targets: whatever a tenant or a platform can choose."""
    evil = report(
        alerts=[
            {
                "alert_id": "a",
                "workspace_id": None,
                "condition": EVIL,
                "count": 1,
                "threshold": 1,
                "since": AT.isoformat(),
                "opened_at": AT.isoformat(),
                "causes": [{"name": EVIL, "code": EVIL, "count": 2}],
            }
        ],
        rates=[
            {"workspace_id": "0de00000-0000-4000-8000-000000000001", "platform": EVIL, "rate_group": EVIL}
            | {"channels": 1, "used": 1.5, "allowed": 27, "until": None, "away": None}
        ],
        publications=[
            publications(
                troubles=[
                    {"publication_id": EVIL, "status": EVIL, "code": EVIL, "channel": EVIL, "since": AT.isoformat()}
                ]
            )
        ],
        notices=[{"target": EVIL, "waiting": 1, "oldest_at": AT.isoformat(), "error": EVIL}],
    )
    [workspace] = evil["workspaces"]
    workspace |= {
        "name": EVIL,
        "status": EVIL,
        "top_errors": [{"code": EVIL, "scope": EVIL, "action": EVIL, "count": 1, "last_at": AT.isoformat()}],
        "channels": [channel(title=EVIL, state=EVIL, reason=EVIL, platform=EVIL, until="infinity")],
    }

    page = status_page(evil, Viewer(label=EVIL, workspace=UUID(int=1), expires_at=AT)) + login_page(EVIL)

    assert "<img" not in page
    assert "<script>alert" not in page
    assert page.count("<script") == 1
    shown = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"<[^>]*\son\w+=", shown)
    assert "style=" not in shown


def publications(**fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"workspace_id": "0de00000-0000-4000-8000-000000000001", "troubles": []}
    usual |= {"next_at": None, "late_since": None, "scheduled": 0, "publishing": 0, "paused": 0, "failed": 0}
    return usual | {"unpublished": 0, "untold": 0} | fields


def test_publications_show_the_next_one_what_is_late_and_why_one_is_paused() -> None:
    trouble = {"publication_id": "0b11", "status": "paused", "code": "missed", "channel": "News"}
    alert = {"alert_id": "a", "workspace_id": "0de00000-0000-4000-8000-000000000001", "count": 1, "threshold": 1}
    alert |= {"condition": "publications_paused", "since": AT.isoformat(), "opened_at": AT.isoformat(), "causes": []}
    its = publications(
        scheduled=2,
        publishing=1,
        paused=1,
        next_at="2026-11-16T13:00:00+00:00",
        late_since="2026-11-16T12:20:00+00:00",
        unpublished=4,
        untold=5,
        troubles=[trouble | {"since": AT.isoformat()}],
    )

    page = status_page(report(publications=[its], alerts=[alert]), VIEWER)

    shown = re.sub(r"<[^>]+>", "", page)
    assert "2 scheduled, 1 being sent, 1 paused · the next one 30 min left" in shown
    assert "the oldest is due since 10 min ago" in shown
    assert "4 commands not in the stream · 5 notices that their owners have not got" in shown
    assert "missed · " in shown
    assert "autopost why 0b11" in shown
    section = "publications-0de00000-0000-4000-8000-000000000001"
    assert f'href="#{section}"' in page
    assert f'id="{section}"' in page
    assert "Scheduled publications" not in status_page(report(), VIEWER)


def test_a_workspace_with_a_bot_shows_its_customers() -> None:
    bot = {"workspace_id": "0de00000-0000-4000-8000-000000000001", "unanswered": 12, "unsent": 3, "waiting": 4}
    bot |= {"oldest_at": "2026-11-16T12:20:00+00:00", "handed_over": 5, "stopped": 6}
    viewer = Viewer(label="x", workspace=UUID(int=1), expires_at=AT)

    page = status_page(report(bots=[bot]), viewer)

    for words in ("Unanswered messages", "3 replies to send, 4 chats waiting", "5 with an operator, 6 stopped the bot"):
        assert words in page
    assert "Customers of the bot" not in status_page(report(), viewer)


def test_what_was_sent_and_held_back_as_twins_lately_is_counted() -> None:
    seen = report()
    seen["workspaces"][0]["activity"] = {"sent": 234, "dedup_suppressed": 56, "enqueue": 7}

    page = status_page(seen, VIEWER)

    assert "<dt>Sent</dt><dd>234</dd><small>in the last ten minutes</small>" in page
    assert "<dt>Duplicates</dt><dd>56</dd>" in page


def test_a_reason_is_shown_without_secrets() -> None:
    seen = report()
    seen["workspaces"][0]["channels"] = [channel(state="paused", reason=f"it leaked: {TOKEN}", until="infinity")]

    page = status_page(seen, VIEWER)

    assert "it leaked: ***" in page
    assert TOKEN not in page


def test_the_policy_names_exactly_the_style_and_the_script_of_the_page() -> None:
    page = status_page(report(), VIEWER)

    for element in ("style", "script"):
        [body] = re.findall(f"<{element}>(.*?)</{element}>", page, flags=re.DOTALL)
        digest = base64.b64encode(sha256(body.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in POLICY
    assert "http://" not in page
    assert "https://" not in page


def test_it_is_whole_without_its_script() -> None:
    page = re.sub(r"<script>.*?</script>", "", status_page(report(), VIEWER), flags=re.DOTALL)

    for words in ("1\u202f200", "No open alerts.", "10 min", "News", "1 reviewed", "Audit stream", "as of 12:30:00"):
        assert words in page
    assert '<noscript><meta http-equiv="refresh"' in page


def test_a_long_list_of_channels_is_cut_and_the_worst_come_first() -> None:
    many = report()
    many["workspaces"][0]["channels"] = [channel(title=f"fine {number}") for number in range(300)]
    many["workspaces"][0]["channels"].append(channel(title="shut", state="disabled", reason="unauthorized"))

    page = status_page(many, VIEWER)

    assert page.index("shut") < page.index("fine")
    assert "and 101 more" in page


@pytest.fixture
async def site(database: Database) -> AsyncIterator[tuple[str, Tenant]]:
    tenant = await Tenant.create(database.pool)
    await issue(database, OPERATOR, None)
    await issue(database, OURS, tenant.workspace)
    await tenant.group(27)
    await dead(tenant, await tenant.channel(title="<b>Lost</b>"), 1)
    await database.pool.execute("""SELECT evaluate_alerts('{"dead": 1}')""")
    async with (
        open_database(MonitorConfig(database_url=database.url), "monitor") as opened_,
        await serve(status_app(opened_), "127.0.0.1", 0) as listening,
    ):
        yield listening.url, tenant


@asynccontextmanager
async def looking(url: str, width: int, **options: Any) -> AsyncIterator[Page]:
    """A page that complains of nothing but of not being let in: a refused script or style would be told here."""
    complaints: list[str] = []
    async with browsing() as browser:
        page = await browser.new_page(viewport={"width": width, "height": 900}, **options)
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda told: complaints.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.goto(url)
        yield page
    assert [one for one in complaints if "status of 401" not in one] == []


@pytest.mark.parametrize("width", [1280, 375])
async def test_somebody_signs_in_looks_and_sees_it_change_by_itself(site: tuple[str, Tenant], width: int) -> None:
    url, tenant = site
    async with looking(f"{url}/status", width) as page:
        await page.get_by_label("Status token").fill(OURS)
        await page.get_by_role("button", name="Show").click()
        await expect(page.locator(".alert")).to_contain_text("1 dead deliveries")
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

        await Operator(tenant).pause(await tenant.channel(title="Fresh"))
        await expect(page.locator("#state")).to_contain_text("live")
        row = page.locator(".rows li", has_text="Fresh")
        await expect(row).to_contain_text("because")
        await expect(row.locator(".pill")).to_have_text("paused")
        assert OURS not in page.url

        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("Status token")).to_be_visible()


async def test_without_a_script_it_is_shown_all_the_same(site: tuple[str, Tenant]) -> None:
    url, _ = site
    bearer = {"Authorization": f"Bearer {OURS}"}
    async with looking(f"{url}/status", 375, java_script_enabled=False, extra_http_headers=bearer) as page:
        await expect(page.locator(".alert")).to_contain_text("1 dead deliveries")
        await expect(page.locator(".tile").first).to_contain_text("Queued")
