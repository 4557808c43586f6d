"""Ask whether anything that the locks pin is known to be vulnerable, and write down what is pinned: `make audit`.

The bill of materials (CycloneDX) of each lock is written first, because it needs nobody's answer.

Exit codes: 0 nothing is known, 1 a pin is vulnerable, 2 the advisory service cannot be reached, so nothing is known
either way. `make` makes 2 of every failure, and prints the code.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from pip_requirements_parser import RequirementsFile

ROOT = Path(__file__).resolve().parent.parent
LOCKS = (ROOT / "requirements" / "services.txt", ROOT / "requirements" / "dev.txt")
OSV = "https://api.osv.dev/v1/query"
VULNERABLE, UNREACHABLE = 1, 2


def components(lock: Path) -> Iterator[Component]:
    """Every pin, also those for other systems and newer Pythons, with the hashes of its files."""
    for requirement in RequirementsFile.from_file(str(lock)).requirements:
        version = requirement.get_pinned_version
        if requirement.name is None or version is None:
            raise SystemExit(f"{lock.name}: {requirement.line} is not pinned; run make lock")
        yield Component(
            type=ComponentType.LIBRARY,
            name=requirement.name,
            version=version,
            purl=PackageURL("pypi", name=requirement.name, version=version),
            bom_ref=f"{requirement.name}=={version}",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one.split(":")[1]) for one in requirement.hash_options],
        )


def write_bill(lock: Path, folder: Path) -> Path:
    path = folder / f"sbom-{lock.stem}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(JsonV1Dot6(Bom(components=components(lock))).output_as_string(indent=2))
    return path


def audit(lock: Path, osv_url: str) -> list[dict[str, Any]] | str:
    """The pins of this lock, each with what is known of it; or why nothing can be said."""
    with tempfile.TemporaryDirectory() as cache:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--require-hashes", "--disable-pip"),
                *("--vulnerability-service", "osv", "--osv-url", osv_url, "--format", "json"),
                *("--progress-spinner", "off", "--timeout", "15", "--cache-dir", cache),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        pins: list[dict[str, Any]] = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError):
        return (ran.stderr.strip().splitlines() or ["no answer"])[-1]
    return pins


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("locks", nargs="*", type=Path, default=LOCKS)
    parser.add_argument("--osv-url", default=OSV, help=f"default: {OSV}")
    parser.add_argument("--sbom", type=Path, default=ROOT / "build", help="folder for the bills of materials")
    asked = parser.parse_args()

    for lock in asked.locks:
        print(f"{lock.name}: bill of materials in {write_bill(lock, asked.sbom)}")
    found = 0
    for lock in asked.locks:
        pins = audit(lock, asked.osv_url)
        if isinstance(pins, str):
            print(
                f"{lock.name}: the advisory service cannot be reached, so nothing was audited. {pins}", file=sys.stderr
            )
            return UNREACHABLE
        found += report(lock, pins)
    return VULNERABLE if found else 0


def report(lock: Path, pins: list[dict[str, Any]]) -> int:
    bad = [(pin, known) for pin in pins for known in pin.get("vulns", ())]
    for pin, known in bad:
        fixed = ", ".join(known.get("fix_versions", ())) or "no version yet"
        print(f"{lock.name}: {pin['name']}=={pin['version']} is vulnerable: {known['id']}, fixed in {fixed}")
    for pin in pins:
        if "skip_reason" in pin:
            print(f"{lock.name}: {pin['name']} was not audited: {pin['skip_reason']}")
    print(f"{lock.name}: {len(pins)} pins asked about, {len(bad)} advisories")
    return len(bad) + sum("skip_reason" in pin for pin in pins)


if __name__ == "__main__":
    sys.exit(main())
