"""`make again`: few failures get one more run alone, many or none stay failures."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "again.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_mended(): assert Path('mended').exists()\n"
        "def test_passed_before(): assert not Path('mended').exists()\n"
    )
    program = tmp_path / ".venv/bin/pytest"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest "$@"\n')
    program.chmod(0o755)
    (tmp_path / "tools").mkdir()
    shutil.copy(SCRIPT, tmp_path / "tools")
    return tmp_path


def again(tree: Path) -> int:
    return subprocess.run([sys.executable, tree / "tools/again.py"], check=False, capture_output=True).returncode


def remember(tree: Path, *failed: str) -> None:
    cache = tree / ".pytest_cache/v/cache/lastfailed"
    cache.parent.mkdir(parents=True)
    cache.write_text(json.dumps(dict.fromkeys(failed, True)))


def test_a_test_that_passes_alone_is_green_and_no_other_is_run(tree: Path) -> None:
    remember(tree, "test_it.py::test_mended")
    (tree / "mended").touch()

    assert again(tree) == 0


def test_a_test_that_fails_twice_is_red(tree: Path) -> None:
    remember(tree, "test_it.py::test_mended")

    assert again(tree) == 1


def test_many_failures_are_not_run_again(tree: Path) -> None:
    (tree / "mended").touch()
    remember(tree, "test_it.py::test_mended", *(f"test_it.py::test_{number}" for number in range(5)))

    assert again(tree) == 1


def test_a_run_that_never_got_to_its_tests_stays_red(tree: Path) -> None:
    assert again(tree) == 1
