"""Write the hashed locks from what each package declares: `make lock`.

The packages of this repository are left out of the locks (they are installed from their folders),
and so is every index and host: a lock says what is installed, not where it came from.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVICES = ("libs/*", "services/*")
EVERYTHING = (*SERVICES, "cli", "simulator", "bench")
COMPILE = ("uv", "pip", "compile", "-", "--universal", "--python-version", "3.11", "--generate-hashes", "--quiet")
NAMELESS = ("--no-header", "--no-annotate", "--no-emit-index-url")


def declared(*folders: str) -> list[str]:
    """Third-party requirements of the packages in these folders."""
    found = [
        requirement
        for folder in folders
        for path in sorted(ROOT.glob(f"{folder}/pyproject.toml"))
        for requirement in tomllib.loads(path.read_text())["project"]["dependencies"]
    ]
    return sorted({name for name in found if not name.startswith("autopost-")})


def listed(*names: str) -> list[str]:
    return [line for name in names for line in (ROOT / "requirements" / name).read_text().splitlines()]


def lock(target: str, requirements: list[str], *options: str) -> None:
    path = ROOT / "requirements" / target
    subprocess.run(
        [*COMPILE, *NAMELESS, *options, "--output-file", str(path)],
        input="\n".join(requirements),
        text=True,
        check=True,
        cwd=ROOT,
    )
    print(f"requirements/{target}: {path.read_text().count('==')} packages")


if __name__ == "__main__":
    upgrade = ["--upgrade"] if "--upgrade" in sys.argv else []
    lock("dev.txt", declared(*EVERYTHING) + listed("embedded.in", "tools.in", "clients.in"), *upgrade)
    # What the images install is what was tested: the same versions, fewer packages.
    lock("services.txt", [*declared(*SERVICES), "-c requirements/dev.txt"], *upgrade)
    lock("bootstrap.txt", ["uv", "-c requirements/dev.txt"], *upgrade)
