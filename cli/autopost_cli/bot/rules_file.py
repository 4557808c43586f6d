"""Rules and settings as a file: YAML for people, JSON as well."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml
from autopost_bot.engine.rules import Rule, Settings
from autopost_bot.engine.ruleset import InvalidRule, Ruleset, load_ruleset

RULES_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def read_file(path: Path) -> Any:
    """YAML or JSON, which is YAML as well."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506  a safe one
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
        raise click.ClickException(f"{path}: cannot be read: {exc}") from None


def read_ruleset(path: Path) -> Ruleset:
    """The rules of a file. One that cannot be read is in ``refused``."""
    document = read_file(path)
    if not isinstance(document, Mapping) or not isinstance(document.get("rules"), list):
        raise click.ClickException(f"{path}: must have `rules:`, a list, and may have `settings:`")
    for number, rule in enumerate(document["rules"]):
        if not isinstance(rule, Mapping) or (unknown := sorted(map(str, rule.keys() - set(Rule.__struct_fields__)))):
            what = "must be a mapping" if not isinstance(rule, Mapping) else f"unknown field {unknown[0]!r}"
            raise click.ClickException(f"{path}: rules[{number}]: {what}")
    if unknown_name := _unknown_name(document.get("settings"), msgspec.to_builtins(Settings())):
        raise click.ClickException(f"{path}: settings: unknown field {unknown_name}")
    try:
        return load_ruleset(document["rules"], document.get("settings"))
    except InvalidRule as exc:
        raise click.ClickException(f"{path}: {exc}") from None


def _unknown_name(given: Any, known: Mapping[str, Any], prefix: str = "") -> str | None:
    """The first name that no setting has, with the nearest one. What is free, like hours, has no known names."""
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if name not in known:
            nearest = get_close_matches(str(name), known, 1)
            return f"{prefix + str(name)!r}" + (f"; did you mean {prefix + nearest[0]!r}?" if nearest else "")
        if isinstance(known[name], Mapping) and (found := _unknown_name(value, known[name], f"{prefix}{name}.")):
            return found
    return None


def write_rules(ruleset: Ruleset) -> str:
    """As YAML, without what is the default."""
    document = {
        "settings": _without_defaults(ruleset.settings_document, msgspec.to_builtins(Settings())),
        "rules": [_rule(rule) for rule in ruleset.rules_document],
    }
    written: str = yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=110)
    return written


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    plain = msgspec.to_builtins(Rule(rule_id="", intent="", response_template=""))
    kept = _without_defaults(rule, plain)
    kept.pop("version", None)
    return {"rule_id": rule["rule_id"], **kept}


def _without_defaults(given: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _plain(_without_defaults(value, plain[name]) if _nests(value, plain[name]) else value)
        for name, value in given.items()
        if name not in plain or value != plain[name]
    }


def _nests(value: Any, plain: Any) -> bool:
    return isinstance(value, dict) and isinstance(plain, dict)


def _plain(value: Any) -> Any:
    """YAML has no tuples."""
    return json.loads(json.dumps(value))


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C is eight times faster, where it was built."""
