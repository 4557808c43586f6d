"""`make shape`: it counts what is there, finds a planted word, and never fails."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "shape.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of three modules, which is no git repository."""
    files = {
        "README.md": "# one line\n",
        "db/tables/010_first.sql": "CREATE TABLE posts (id int);\n",
        "db/functions/posts/doom_media.sql": "CREATE OR REPLACE FUNCTION doom_media()\n" + "\n" * 6,
        "libs/one/autopost_one/first.py": "import aiohttp\n\n\nclass Answer: ...\n\n\nprint(aiohttp.web._loop)\n",
        "libs/one/autopost_one/second.py": "class Answer: ...\nTEXT = 'CREATE TABLE posts (id int)'\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "tools").mkdir()
    shutil.copy(SCRIPT, tmp_path / "tools")
    return tmp_path


def shape(script: Path) -> dict[str, str]:
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return {line[:42].strip(): line[43:].strip() for line in ran.stdout.splitlines()}


def test_it_counts_what_is_there(tree):
    found = shape(tree / "tools" / "shape.py")

    assert found["files in the largest folder of code"].startswith("2 (libs/one/autopost_one)")
    assert found["copies of the schema"].startswith("2 libs/one/autopost_one/second.py")
    assert found["SQL functions / longest"].startswith("1 / 7 doom_media")
    assert found["type names with two meanings"].startswith("1 ")
    assert found["Answer"] == "one.first one.second"
    assert found["one.first"] == "_loop"


def test_a_word_that_was_replaced_is_found_by_its_place(tree):
    ran = subprocess.run([sys.executable, str(tree / "tools" / "shape.py")], capture_output=True, text=True)

    assert "db/functions/posts/doom_media.sql: doom_media: no reason given" in ran.stdout


def test_a_function_over_the_aim_needs_a_reason(tree):
    long = "CREATE OR REPLACE FUNCTION long()\n" + "\n" * 160
    (tree / "db/functions/posts/long.sql").write_text(long)
    (tree / "db/functions/posts/enqueue_seen_posts.sql").write_text(long)

    found = shape(tree / "tools" / "shape.py")

    assert found["on purpose: long"] == "no reason given"
    assert found["on purpose: enqueue_seen_posts"] != "no reason given"


def test_it_reads_the_tree_it_belongs_to():
    assert shape(SCRIPT)["copies of the schema"]
