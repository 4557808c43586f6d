"""The files of the page: nothing from elsewhere, nothing inline, nothing that turns text into markup."""

import re

import pytest
from autopost_simulator.page import FOLDER

NAMES = sorted(path.name for path in FOLDER.iterdir() if path.name != "index.html")


async def test_the_page_allows_nothing_but_its_own_files(client):
    page = await client.ask("GET", "/")

    policy = page.headers["Content-Security-Policy"]
    assert (page.status, page.headers["Content-Type"].partition(";")[0]) == (200, "text/html")
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert not re.search(r"<style|<script(?![^>]* src=)|\son\w+=|\sstyle=", page.body)


async def test_every_file_it_names_is_there(client):
    named = set(re.findall(r'(?:href|src)="(/page/[^"]+)"', (FOLDER / "index.html").read_text()))
    named |= {
        f"/page/{name}" for path in FOLDER.glob("*.js") for name in re.findall(r'from "\./([^"]+)"', path.read_text())
    }

    assert {path.removeprefix("/page/") for path in named} == set(NAMES)
    assert {(await client.ask("GET", path)).status for path in named} == {200}


@pytest.mark.parametrize("name", ["nothing.js", "..%2fpage.py", "index.html"])
async def test_nothing_else_is_handed_out(client, name):
    async with client.session.get(f"{client.base}/page/{name}") as response:
        assert response.status == 404


@pytest.mark.parametrize("name", [*NAMES, "index.html"])
def test_a_file_fetches_nothing_from_elsewhere_and_writes_no_markup(name):
    text = (FOLDER / name).read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")

    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://")
    assert [word for word in forbidden if word in text] == []
