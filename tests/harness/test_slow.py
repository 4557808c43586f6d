"""`make quick` leaves out whole systems and whatever has a longer time limit, and nothing else."""

import subprocess
import sys
from pathlib import Path

from harness.slow import PLACES

ROOT = Path(__file__).resolve().parents[2]


def test_every_place_that_is_named_exists():
    assert [place for place in PLACES if not list(ROOT.glob(f"{place.partition('::')[0]}*"))] == []


def test_tests_are_slow_by_their_place_or_by_their_time_limit():
    asked = ("tests/e2e/test_services.py", "tests/bench", "tests/monitor/relay/test_relay_kills.py")
    options = ("--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow")

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *asked], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stdout
    assert "tests/bench/measures/test_turns.py" in ran.stdout
    assert not [name for name in ("test_services.py", "test_whole.py", "test_relay_kills.py") if name in ran.stdout]
