"""Signing in to the status page: a form, a cookie that stays here, and a way out."""

from collections.abc import AsyncIterator

import pytest
from harness.databases import Database
from monitor.support.status_site import OURS, Site, status_site


@pytest.fixture
async def site(database: Database) -> AsyncIterator[Site]:
    async with status_site(database) as made:
        yield made


async def test_the_form_leaves_a_cookie_that_no_script_and_no_other_site_gets(site: Site) -> None:
    answer = await site.http.post("/status/login", data={"token": OURS})

    assert (answer.status_code, answer.headers["location"]) == (303, "/status")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    page = await site.http.get("/status")
    assert (page.status_code, "workspace-ours" in page.text) == (200, True)


async def test_beyond_this_machine_the_cookie_goes_only_over_tls(site: Site) -> None:
    answer = await site.http.post("/status/login", data={"token": OURS}, headers={"Host": "status.example.org"})

    assert "Secure" in answer.headers["set-cookie"]


async def test_a_wrong_token_in_the_form_leaves_no_cookie_and_is_not_repeated(site: Site) -> None:
    answer = await site.http.post("/status/login", data={"token": "canary-canary-canary-canary"})

    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
    assert "canary" not in answer.text
    assert "unknown, expired or revoked" in answer.text


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
async def test_a_form_of_another_site_is_refused(site: Site, headers: dict[str, str]) -> None:
    answer = await site.http.post("/status/login", data={"token": OURS}, headers=headers)

    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


async def test_signing_out_forgets_the_cookie(site: Site) -> None:
    await site.http.post("/status/login", data={"token": OURS})

    await site.http.post("/status/logout")

    assert (await site.http.get("/status")).status_code == 401
