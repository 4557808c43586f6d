"""Run the tests that failed last once more, one after the other, as long as they are few.

A machine with two busy cores sometimes makes one test of thousands miss its ten seconds. Such a test passes alone. More
than five failures, or none that pytest remembers (it did not get as far as the tests), stay failures.
"""

import json
import subprocess
import sys
from pathlib import Path

FEW = 5


def main() -> int:
    tree = Path(__file__).resolve().parent.parent
    remembered = tree / ".pytest_cache/v/cache/lastfailed"
    failed = json.loads(remembered.read_text()) if remembered.exists() else {}
    if not 0 < len(failed) <= FEW:
        print(f"{len(failed)} tests failed: not run again")
        return 1
    print("Run again, alone; each of these is a test to mend:", *failed, sep="\n  ")
    command = [tree / ".venv/bin/pytest", "-n", "0", "--last-failed", "--last-failed-no-failures", "none"]
    return subprocess.run(command, cwd=tree, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
