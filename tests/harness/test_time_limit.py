"""The limit on every test strikes wherever a test waits, and the rest of a run goes on."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.time_limit import AGAIN, limited

HANGING = """
import asyncio
import ctypes
import threading
import time

import pytest


def test_before():
    pass


@pytest.mark.time_limit(1)
def test_blocks():
    threading.Event().wait()


@pytest.mark.time_limit(1)
async def test_waits_in_its_loop():
    await asyncio.Event().wait()


@pytest.mark.time_limit(1)
def test_swallows_every_exception():
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            pass


@pytest.mark.time_limit(1)
def test_hangs_in_a_fixture(stuck):
    pass


@pytest.fixture
def stuck():
    threading.Event().wait()


@pytest.mark.time_limit(1, grace=2)
def test_never_comes_back_to_python():
    c, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(128)
    c.pthread_mutex_init(mutex, None)
    c.pthread_mutex_lock(mutex)
    c.pthread_mutex_lock(mutex)  # waits for itself, with the interpreter's lock held, whatever the signal


def test_after():
    pass


async def test_after_in_a_loop():
    await asyncio.sleep(0)
"""


def test_one_that_blocks_is_ended_and_named() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"stuck took more than 0\.01 s"), limited("stuck", 0.01):
        threading.Event().wait()


def test_one_whose_loop_waits_for_ever_is_ended() -> None:
    with pytest.raises(pytest.fail.Exception, match="stuck"), limited("stuck", 0.01):
        asyncio.run(asyncio.Event().wait())


def test_the_limit_around_it_goes_on() -> None:
    with limited("inner", 60):
        pass

    left, again = signal.getitimer(signal.ITIMER_REAL)
    assert left > 60
    assert again == AGAIN


def test_tests_that_hang_fail_and_all_others_are_run(tmp_path: Path) -> None:
    """With the plugin that every run has, in workers, as `make test` does it."""
    (tmp_path / "conftest.py").write_text(
        "from harness.time_limit import pytest_configure, pytest_runtest_protocol\n"
        "__all__ = ['pytest_configure', 'pytest_runtest_protocol']\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\naddopts = -n 1 -rA -p no:cacheprovider\n")
    (tmp_path / "test_planted.py").write_text(HANGING)

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), str(tmp_path)],
        env={"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    hung = ("blocks", "waits_in_its_loop", "swallows_every_exception", "hangs_in_a_fixture")
    assert ran.returncode == 1
    for name in hung:
        assert f"test_{name} took more than 1 s" in ran.stdout
    assert "crashed while running 'test_planted.py::test_never_comes_back_to_python'" in ran.stdout
    for name in ("before", "after", "after_in_a_loop"):
        assert f"PASSED test_planted.py::test_{name}\n" in ran.stdout
