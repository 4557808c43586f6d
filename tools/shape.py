"""The shape of the tree in numbers, beside what it aims at: `make shape`. Aims to judge by; it never fails.

The second list is of words that the glossary replaced and that a search still finds, each with the reason why it stays.
"""

import ast
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from signal import SIG_DFL, SIGPIPE, signal

ROOT = Path(__file__).resolve().parent.parent
CODE = ("libs/", "services/", "cli/", "bench/", "simulator/", "db/")
MAY_REPEAT = {"Gateway", "Config"}
LONGEST_SUBJECT = 72
SHOWN = 8

TABLE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?([a-z_]+)", re.IGNORECASE)
FUNCTION = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION ", re.IGNORECASE)


def words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


OLD_MODULES = words("""
    together doors crowds buckets bodies strangers materialize bring tell trouble samples one running lead rounds guards
    collect stuck chain acks pulling exchange values names answer guests
""")
OLD_TYPES = words("Line Crowded Bringer Flight Desk Shelf Over Ended Turns Rounds")
OLD_FUNCTIONS = words("""
    chain materialize bring
    wants_a_call put_up_with grounded bite pass_posts pass_gate take_receipts posts_in choose_deliveries settle_channels
    claimed_in_common hold_claims delivery_born delivery_moved delivery_gone refuse_move channel_is_sound
    channel_readiness doom_media doom_strays bury_media judge_alerts judge_messages judge_requeue settle_notice due_of
    is_near signed_by
""")
OLD_TABLES = words("given_up forgotten guard_walks monitor_rounds yields doom")
OLD_MESSAGES = (
    "takes fewer requests a second",
    "stands here twice",
    "there is no such field",
    "in UTF-8 where it says so",
    "too much is coming in at once",
    "it is empty",
    "Answers remembered for a moment",
    "whoever knows this doom",
)
REASONS = {
    "exchange": "HTTP calls a request and its answer an exchange",
    "choose_deliveries": "assign_slots took over what it did; the name now says what the decision of a claim returns",
}
"""Why a word that was replaced elsewhere stays, or came back for something else."""

MOST_FUNCTIONS = 225
LONGEST_FUNCTION = 160
ON_PURPOSE = {
    "count": "commit_deliveries alone was 309 lines and is ten functions; new since the aim was set are views, "
    "set-aside work, circuits, claims and commits of many workspaces, why and verify of these, and actions of bots",
    "enqueue_seen_posts": "one statement decides about a channel and writes it, under the lock of the content",
    "enqueue_distinct_posts": "one statement stores contents, plans, deliveries and events of all posts",
    "deliveries_after_update": "the trigger reads its transition tables, which no other function can see",
    "reschedule_channels": "closing a channel is right only if it is decided in the statement that holds its row",
}
"""Why an aim is missed."""


def main() -> None:
    signal(SIGPIPE, SIG_DFL)  # `make shape | head` ends quietly
    files = tracked()
    for title, now, aim in rows(files):
        print(f"{title:<42} {now:<58} {aim}")
    print("\nWords that the glossary replaced:")
    found = sorted(set(old_words(files)))
    for place, word in found:
        print(f"  {place}: {word}: {REASONS.get(word, 'no reason given')}")
    print(f"  {len(found)} places, {sum(word in REASONS for _, word in found)} with a reason")


def tracked() -> list[Path]:
    """Without git, as in an archive: every file there is."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard") or [
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if ".venv" not in path.parts
    ]
    return [Path(name) for name in sorted(set(listed)) if (ROOT / name).is_file()]


def git(*arguments: str) -> list[str]:
    ran = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.splitlines()


def text(path: Path) -> str:
    return (ROOT / path).read_text()


def rows(files: list[Path]) -> Iterator[tuple[str, str, str]]:
    yield "", "now", "aim"
    yield "files in the largest folder of code", largest_folder(files), "≤ 22"
    yield "copies of the schema", schema_copies(files), "1"
    yield "SQL functions / longest", *sql_functions(files)
    yield from (("  on purpose: " + name, reason, "") for name, reason in missed_on_purpose(files))
    repeated = repeated_types(files)
    yield "type names with two meanings", str(len(repeated)), "≤ 10"
    for name, modules in repeated.items():
        yield f"  {name}", " ".join(modules), ""
    private = aiohttp_privates(files)
    yield "modules that use aiohttp's private names", str(len(private)), "≤ 1"
    for module, names in private.items():
        yield f"  {module}", " ".join(names), ""
    yield "README / decisions", documents(files), "≤ 120 lines / ≤ 15 ADRs"
    yield f"commit subjects over {LONGEST_SUBJECT} characters", long_subjects(), "0"


def is_code(path: Path) -> bool:
    return path.as_posix().startswith(CODE) and path.suffix in {".py", ".sql", ".js"} and path.name != "__init__.py"


def largest_folder(files: list[Path]) -> str:
    folders = Counter(path.parent.as_posix() for path in files if is_code(path))
    (first, most), *others = folders.most_common(SHOWN)
    beyond = [f"{folder} {count}" for folder, count in others if count > 22]
    return ", ".join([f"{most} ({first})", *beyond])


def schema_copies(files: list[Path]) -> str:
    """One, and one more for each file beside `db/tables` that defines a table of the schema."""
    known = {name for path in files if path.is_relative_to("db/tables") for name in TABLE.findall(text(path))}
    copies = [
        path.as_posix()
        for path in files
        if path.suffix in {".sql", ".py", ".md"} and not path.is_relative_to("db/tables")
        if path.parts[0] != "tests" and known & set(TABLE.findall(text(path)))
    ]
    return " ".join([str(1 + len(copies)), *copies])


def sql_functions(files: list[Path]) -> tuple[str, str]:
    lengths = lengths_of_functions(files)
    longest = sorted(((lines, name) for name, lines in lengths.items()), reverse=True)[:3]
    shown = ", ".join(f"{lines} {name}" for lines, name in longest)
    return f"{len(lengths)} / {shown}", f"≤ {MOST_FUNCTIONS} / ≤ {LONGEST_FUNCTION} lines"


def lengths_of_functions(files: list[Path]) -> dict[str, int]:
    """A file each; the length is that of the file, with its header."""
    functions = (path for path in files if path.is_relative_to("db/functions") and FUNCTION.search(text(path)))
    return {path.stem: len(text(path).splitlines()) for path in functions}


def missed_on_purpose(files: list[Path]) -> Iterator[tuple[str, str]]:
    lengths = lengths_of_functions(files)
    missed = ["count"] if len(lengths) > MOST_FUNCTIONS else []
    missed += [name for name, lines in lengths.items() if lines > LONGEST_FUNCTION]
    yield from ((name, ON_PURPOSE.get(name, "no reason given")) for name in missed)


def python(files: list[Path]) -> Iterator[tuple[Path, ast.Module]]:
    for path in files:
        if path.suffix == ".py" and path.as_posix().startswith(CODE):
            yield path, parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(text(path))


def repeated_types(files: list[Path]) -> dict[str, list[str]]:
    """Classes of one name in several modules."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path, tree in python(files):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name not in MAY_REPEAT:
                modules[node.name].append(module_name(path))
    return {name: places for name, places in sorted(modules.items()) if len(places) > 1}


def module_name(path: Path) -> str:
    start = next(number for number, part in enumerate(path.parts) if part.startswith("autopost_"))
    return ".".join(path.with_suffix("").parts[start:]).removeprefix("autopost_")


def aiohttp_privates(files: list[Path]) -> dict[str, list[str]]:
    """Names with an underscore in front that a module uses beside aiohttp and does not define itself."""
    found = {}
    for path, tree in python(files):
        if any("aiohttp" in imported for imported in imports(tree)):
            names = privates(tree)
            if names:
                found[module_name(path)] = names
    return found


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def privates(tree: ast.Module) -> list[str]:
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    own = {node.attr for node in attributes if isinstance(node.ctx, ast.Store)} | set(defined(tree))
    used = {node.attr for node in attributes if isinstance(node.ctx, ast.Load)}
    taken = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aiohttp")
        for name in node.names
    }
    return sorted(name for name in (used - own) | taken if name.startswith("_") and not name.startswith("__"))


def defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def documents(files: list[Path]) -> str:
    records = sum(path.is_relative_to("docs/adr") and path.suffix == ".md" for path in files)
    decisions = ROOT / "docs" / "decisions.md"
    rest = f", decisions.md {len(decisions.read_text().splitlines())} lines" if decisions.exists() else ""
    return f"{len(text(Path('README.md')).splitlines())} lines / {records} ADRs{rest}"


def long_subjects() -> str:
    """Since the tables are written once, which is where the tree took this shape."""
    first = git("log", "--reverse", "--diff-filter=A", "--format=%H", "--", "db/tables")
    if not first:
        return "no history here"
    subjects = git("log", "--no-merges", "--format=%s", f"{first[0]}^..HEAD")
    return f"{sum(len(subject) > LONGEST_SUBJECT for subject in subjects)} of {len(subjects)}"


def old_words(files: list[Path]) -> Iterator[tuple[str, str]]:
    """Where one of them names a module, a type, a function, an argument or an attribute, or stands in SQL; and old
    messages."""
    for path, tree in python(files):
        names = {name.lstrip("_") for name in (*defined(tree), *arguments(tree), *attributes(tree))}
        found = names & (OLD_TYPES | OLD_FUNCTIONS) | {path.stem} & OLD_MODULES
        yield from ((path.as_posix(), name) for name in found)
        yield from ((path.as_posix(), f'"{message}"') for message in OLD_MESSAGES if message in text(path))
    for path in files:
        if path.suffix == ".sql" and path.as_posix().startswith(CODE):
            statements = re.sub(r"--.*|'[^']*'", "", text(path))
            yield from ((path.as_posix(), name) for name in words_of(statements) & (OLD_FUNCTIONS | OLD_TABLES))


def arguments(tree: ast.Module) -> Iterator[str]:
    return (node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))


def attributes(tree: ast.Module) -> Iterator[str]:
    """Those that a module sets."""
    return (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))


def words_of(statements: str) -> set[str]:
    return set(re.findall(r"\w+", statements))


if __name__ == "__main__":
    main()
