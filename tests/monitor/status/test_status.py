"""The status page over HTTP: a token opens it, for its own workspace alone, and nothing else does."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import pytest
from autopost_monitor.status.reports import Reports
from harness.databases import Database
from monitor.support.status_site import OPERATOR, OURS, THEIRS, Site, issue, status_site, trouble


@pytest.fixture
async def site(database: Database) -> AsyncIterator[Site]:
    async with status_site(database) as made:
        yield made


async def test_the_report_has_what_an_operator_asks_for_first(site: Site) -> None:
    await trouble(site.ours, "ours")

    report = await site.report()

    [workspace] = report["workspaces"]
    counts = {name: workspace["counts"][name] for name in ("queued", "dead", "failed_permanent")}
    assert counts == {"queued": 3, "dead": 2, "failed_permanent": 1}
    assert [(one["title"], one["state"], one["reason"]) for one in workspace["channels"]] == [
        ("channel-ours", "paused", "because")
    ]
    assert workspace["channels"][0]["until"] is not None
    assert "code-ours" in {error["code"] for error in workspace["top_errors"]}
    assert [(one["condition"], one["count"]) for one in report["alerts"]] == [("dead", 2)]
    [rate] = report["rates"]
    assert (rate["rate_group"], rate["allowed"], rate["used"]) == ("group-ours", 27, 0.3)
    assert (report["staged"], report["relay"]["seconds"]) == ([], 0)


@pytest.mark.parametrize("path", ["/status", "/v1/status"])
async def test_without_a_token_nothing_is_shown(site: Site, path: str) -> None:
    await trouble(site.ours, "ours")

    answer = await site.get(path)

    assert answer.status_code == 401
    assert "ours" not in answer.text


@pytest.mark.parametrize(
    "token",
    [
        "",
        "short",
        "a-token-that-nobody-issued",
        OURS.upper(),
        f"{OURS} {OURS}",
        f"{OURS}x",
        sha256(OURS.encode()).hexdigest(),
        "x" * 300,
    ],
)
async def test_a_wrong_token_is_a_problem_for_programs_and_a_form_for_people(site: Site, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}".strip()}

    machine = await site.http.get("/v1/status", headers=headers)
    human = await site.http.get("/status", headers=headers)

    assert (machine.status_code, machine.headers["content-type"]) == (401, "application/problem+json")
    assert machine.json()["field"] == "Authorization"
    assert machine.headers["www-authenticate"].startswith("Bearer")
    assert human.status_code == 401
    assert '<form method="post" action="/status/login"' in human.text
    assert token.strip() == "" or token.strip() not in machine.text + human.text


async def test_an_expired_and_a_revoked_token_open_nothing(database: Database, site: Site) -> None:
    await issue(database, "token-that-is-over-0000", site.ours.workspace, "1 millisecond")
    await site.report()

    await database.pool.execute("SELECT revoke_status_token($1, 'ann', 'lost')", OURS)

    assert (await site.get("/v1/status", "token-that-is-over-0000")).status_code == 401
    assert (await site.get("/v1/status", OURS)).status_code == 401
    assert (await site.get("/v1/status", THEIRS)).status_code == 200


@pytest.mark.parametrize("path", ["/status", "/v1/status"])
async def test_a_tenants_token_shows_nothing_of_another_workspace(site: Site, path: str) -> None:
    await trouble(site.ours, "ours")
    await trouble(site.theirs, "theirs")
    await site.get(path, OPERATOR)  # what was read for another must not be shown to us

    seen = (await site.get(path, OURS)).text

    assert "channel-ours" in seen
    assert "theirs" not in seen
    assert str(site.theirs.workspace) not in seen


@pytest.mark.parametrize("path", ["/status", "/v1/status"])
async def test_asking_for_another_workspace_does_not_help(site: Site, path: str) -> None:
    await trouble(site.theirs, "theirs")
    theirs, ours = str(site.theirs.workspace), str(site.ours.workspace)

    for query in (
        f"workspace={theirs}",
        f"workspace={theirs.upper()}",
        f"workspace={theirs}&workspace={ours}",
        f"workspace={uuid4()}",
        f"workspace_id={theirs}",
        f"p_workspace_id={theirs}&workspace={ours}",
        "workspace=",
        "workspace=null",
        "workspace=00000000-0000-0000-0000-000000000000",
    ):
        answer = await site.get(f"{path}?{query}", OURS)

        assert "theirs" not in answer.text, query
        assert answer.status_code in (200, 400, 403), query
    assert (await site.get(f"{path}?workspace={theirs}", OURS)).status_code == 403
    assert (await site.get(f"{path}?workspace={ours}", OURS)).status_code == 200


async def test_a_header_or_a_cookie_of_another_does_not_widen_a_token(site: Site) -> None:
    """The header is what counts; a cookie beside it does not."""
    await trouble(site.theirs, "theirs")

    site.http.cookies.set("autopost_status", THEIRS)

    answer = await site.get("/v1/status", OURS)

    assert "theirs" not in answer.text


async def test_the_operator_sees_all_or_the_one_that_is_named(site: Site) -> None:
    await trouble(site.ours, "ours")
    await trouble(site.theirs, "theirs")

    everything = await site.report(OPERATOR)
    one = await site.report(OPERATOR, workspace=str(site.theirs.workspace))

    assert [row["name"] for row in everything["workspaces"]] == ["workspace-ours", "workspace-theirs"]
    assert len(everything["alerts"]) == 2
    assert "blocking_pid" in everything["relay"]
    assert [row["name"] for row in one["workspaces"]] == ["workspace-theirs"]
    assert (await site.get(f"/v1/status?workspace={uuid4()}", OPERATOR)).status_code == 404


async def test_a_tenant_is_told_of_the_installation_only_how_late_the_stream_is(site: Site) -> None:
    report = await site.report()

    assert set(report["relay"]) == {"seconds"}
    assert report["notices"] == []


async def test_a_token_in_the_address_opens_nothing(site: Site) -> None:
    for query in (f"token={OURS}", f"access_token={OURS}", f"autopost_status={OURS}"):
        assert (await site.get(f"/v1/status?{query}")).status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_it_can_only_be_looked_at(site: Site, method: str) -> None:
    answer = await site.http.request(method, "/v1/status", headers={"Authorization": f"Bearer {OPERATOR}"})

    assert answer.status_code == 405


@pytest.mark.parametrize("path", ["/status", "/v1/status"])
@pytest.mark.parametrize("token", [OPERATOR, None])
async def test_every_answer_forbids_what_a_page_does_not_need(site: Site, path: str, token: str | None) -> None:
    headers = (await site.get(path, token)).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


async def test_many_who_look_at_the_same_are_one_question() -> None:
    asked: list[UUID | None] = []

    class Source:
        async def status_report(self, workspace: UUID | None) -> dict[str, Any]:
            asked.append(workspace)
            return {"of": workspace}

    reports = Reports(Source(), fresh=timedelta(hours=1))
    one, two = uuid4(), uuid4()
    answers = await asyncio.gather(*(reports.of(which) for which in (one, two, None) * 10))

    assert sorted(map(str, asked)) == sorted(map(str, (one, two, None)))
    assert [answer["of"] for answer in answers] == [one, two, None] * 10
