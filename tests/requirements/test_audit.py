"""`make audit`: every pin is written down, a vulnerable one is named, and silence is no all-clear."""

import json
import re
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from autopost_runtime.http.web import serve

ROOT = Path(__file__).parents[2]
LOCKS = [ROOT / "requirements" / name for name in ("services.txt", "dev.txt")]
HASH = "sha256:" + "ab" * 32
PLANTED = ("jinja2", "2.4")
ADVISORY = {
    "id": "PYSEC-0000-1",
    "summary": "reads more than it should",
    "affected": [
        {
            "package": {"name": "jinja2", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.11.3"}]}],
        }
    ],
}


class Advisories:
    """Answers as OSV does; knows of one version of one package."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked: set[tuple[str, str]] = set()

    async def query(self, request: web.Request) -> web.Response:
        asked: Mapping[str, Any] = json.loads(await request.read())
        pin = asked["package"]["name"], asked["version"]
        self.asked.add(pin)
        return web.json_response({"vulns": [ADVISORY]} if pin == PLANTED else {}, status=self.status)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/v1/query", self.query)
        async with await serve(app, "127.0.0.1", 0) as site:
            yield f"{site.url}/v1/query"


async def audit(url: str, folder: Path, *locks: Path) -> tuple[int, str, str]:
    process = await create_subprocess_exec(
        *(sys.executable, str(ROOT / "requirements" / "audit.py"), "--osv-url", url, "--sbom", str(folder)),
        *map(str, locks),
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def lock_of(folder: Path, *pins: tuple[str, str]) -> Path:
    lock = folder / "planted.txt"
    lock.write_text("".join(f"{name}=={version} \\\n    --hash={HASH}\n" for name, version in pins))
    return lock


async def test_a_vulnerable_pin_is_named_with_what_repairs_it_and_the_exit_code_is_1(tmp_path: Path) -> None:
    async with Advisories().listening() as url:
        code, out, _ = await audit(url, tmp_path, lock_of(tmp_path, ("idna", "3.10"), PLANTED))

    assert code == 1
    assert "jinja2==2.4 is vulnerable: PYSEC-0000-1, fixed in 2.11.3" in out
    assert "idna==3.10 is" not in out


async def test_pins_of_which_nothing_is_known_exit_0(tmp_path: Path) -> None:
    async with Advisories().listening() as url:
        code, out, _ = await audit(url, tmp_path, lock_of(tmp_path, ("idna", "3.10")))

    assert (code, "1 pins asked about, 0 advisories" in out) == (0, True)


@pytest.mark.parametrize("away", ["closed", "failing"])
async def test_a_service_that_cannot_be_reached_is_said_plainly_and_is_no_all_clear(tmp_path: Path, away: str) -> None:
    async with Advisories(status=500).listening() as url:
        asked = url if away == "failing" else "http://127.0.0.1:1/v1/query"
        code, out, err = await audit(asked, tmp_path, lock_of(tmp_path, PLANTED))

    assert code == 2
    assert "the advisory service cannot be reached, so nothing was audited" in err
    assert "Traceback" not in out + err
    assert (tmp_path / "sbom-planted.json").exists()


async def test_an_unpinned_requirement_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "loose.txt"
    lock.write_text("idna>=3\n")

    code, _, err = await audit("http://127.0.0.1:1/", tmp_path, lock)

    assert code == 1
    assert "idna>=3 is not pinned" in err


async def test_the_locks_of_the_project_are_asked_about_and_written_down_pin_by_pin(tmp_path: Path) -> None:
    service = Advisories()
    async with service.listening() as url:
        code, out, err = await audit(url, tmp_path, *LOCKS)

    assert (code, err) == (0, ""), out
    for lock in LOCKS:
        pinned = set(re.findall(r"^([\w.-]+)==([^ ;]+)", lock.read_text(), re.MULTILINE))
        bill = json.loads((tmp_path / f"sbom-{lock.stem}.json").read_text())
        listed = {(one["name"], one["version"]) for one in bill["components"]}
        assert (bill["bomFormat"], listed) == ("CycloneDX", pinned)
        assert all(one["hashes"] and one["purl"].startswith("pkg:pypi/") for one in bill["components"])
        assert len(service.asked & pinned) > len(pinned) * 0.8  # the others are for other systems
