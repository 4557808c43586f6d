"""One Dockerfile for every image: each service has a stage that starts it, and the command has one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES = sorted(path.parent.name for path in ROOT.glob("services/*/pyproject.toml"))


def stages() -> dict[str, str]:
    """The text of each stage by its name."""
    parts = re.split(r"^FROM \S+ AS (\S+)$", DOCKERFILE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("service", SERVICES)
def test_each_service_has_a_stage_that_starts_it(service):
    assert f'ENTRYPOINT ["python", "-m", "autopost_{service}"]' in stages()[service]


def test_the_image_of_the_command_starts_it_and_has_no_bench():
    assert 'ENTRYPOINT ["autopost"]' in stages()["cli"]
    assert "bench" not in re.sub(r"^#.*$", "", DOCKERFILE, flags=re.MULTILINE)


def test_no_image_runs_as_root():
    assert "\nUSER 10001:10001" in stages()["base"]
    assert DOCKERFILE.count("\nUSER ") == 1


def test_what_is_copied_is_not_ignored():
    kept = set(re.findall(r"^!(\S+)/$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE))
    copied = {path.split("/")[0] for path in re.findall(r"^COPY (?!--from)(\S+)", DOCKERFILE, flags=re.MULTILINE)}

    assert copied == kept
