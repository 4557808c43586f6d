"""Config structs read from ``AUTOPOST_*`` variables, or from files named by ``AUTOPOST_*_FILE``.

Config is read once, in ``__main__``. A service with an invalid config does not start and reports every problem at once.
Secrets are held as ``Secret`` and never printed.
"""

import hmac
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import msgspec
from msgspec.structs import FieldInfo

from autopost_runtime.config.env_values import InvalidValue, Named, Url, parse, show_duration, unwrap
from autopost_runtime.secrets.redaction import MASK, redact_secrets

PREFIX = "AUTOPOST_"
_NUMBER = re.compile(r"\d+(\.\d+)?")

PostgresUrl = Annotated[str, Url(("postgresql", "postgres"), "postgresql://user@host:5432/autopost")]
NatsUrl = Annotated[str, Url(("nats", "tls", "ws", "wss"), "nats://host:4222", several=True, off=True)]
HttpUrl = Annotated[str, Url(("http", "https"), "https://host")]

T = TypeVar("T", bound=msgspec.Struct)


class ConfigError(Exception):
    """All problems, one per line, each with its variable."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Secret:
    """A text that cannot be printed, pickled or encoded; only ``reveal()`` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        if not value:
            raise ValueError("a secret must not be empty")
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    __hash__ = None  # type: ignore[assignment]  # a hash would reveal whether two secrets are equal

    def __repr__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not serialised")


class NatsAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials of the NATS client, see ``nats.access``; without them, those in the URL."""

    nats_user: str | None = None
    nats_password: Secret | None = None
    nats_tls_ca: Path | None = None
    """Certificate authorities of the server; with this or with a certificate, TLS is required."""
    nats_tls_cert: Path | None = None
    nats_tls_key: Path | None = None


class ServiceConfig(NatsAccess, frozen=True, kw_only=True):
    """The config of every service; each adds its own fields and its own ``database_role``."""

    database_url: PostgresUrl
    database_role: str | None = None
    database_pool: Annotated[int, msgspec.Meta(ge=1, le=500)] = 10
    command_timeout: Annotated[timedelta, msgspec.Meta(ge=0.1, le=600)] = timedelta(seconds=10)
    nats_url: NatsUrl | None = None
    nats_namespace: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_-]+(\.[a-z0-9_-]+)*$")] = "autopost"
    s3_endpoint: HttpUrl | None = None
    s3_bucket: Annotated[str, msgspec.Meta(min_length=3, max_length=63)] = "autopost"
    s3_access_key: Secret | None = None
    s3_secret_key: Secret | None = None
    s3_encryption: Literal["auto", "required", "off"] = "auto"
    """Requested for every object. ``auto`` continues with a warning if the store does not support encryption."""
    payload_encryption: Literal["off", "AES256"] = "off"
    """Required for raw payloads, independent of ``s3_encryption``: if the store refuses, no payload is stored."""
    health_host: str = "127.0.0.1"
    health_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    poll_interval: Annotated[timedelta, msgspec.Meta(ge=0.01)] = timedelta(seconds=2)
    log_format: Literal["json", "console"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    otlp_endpoint: HttpUrl | None = None
    trace_dir: Path | None = None
    drain_timeout: Annotated[timedelta, msgspec.Meta(ge=0, le=60)] = timedelta(seconds=8)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in describe(self).items())})"


def load(kind: type[T], env: Mapping[str, str] | None = None) -> T:
    """Raises ``ConfigError`` with every problem found, not only the first."""
    source = os.environ if env is None else env
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field in msgspec.structs.fields(kind):
        try:
            found = _find_by_any_name(field, source)
            if found is not None:
                values[field.name] = _read(field.type, *found)
            elif field.required:
                problems.append(f"{_variable(field)} is not set; expected {_expectation(field.type)}")
        except ConfigError as wrong:
            problems += wrong.problems
    if problems:
        raise ConfigError(problems)
    return kind(**values)


def describe(config: msgspec.Struct) -> dict[str, str]:
    """Every variable with its value, without secrets and passwords in URLs."""
    return {
        _variable(field): _shown(getattr(config, field.name), _named(field))
        for field in msgspec.structs.fields(type(config))
    }


def variables(kind: type[msgspec.Struct]) -> set[str]:
    """Every name that ``load`` reads, without the ``_FILE`` names."""
    fields = msgspec.structs.fields(kind)
    return {name for field in fields for name in (_variable(field), PREFIX + field.name.upper())}


def _named(field: FieldInfo) -> Named | None:
    _, marks, _ = unwrap(field.type)
    return next((mark for mark in marks if isinstance(mark, Named)), None)


def _variable(field: FieldInfo) -> str:
    named = _named(field)
    return PREFIX + (named.name if named else field.name.upper())


def _find_by_any_name(field: FieldInfo, env: Mapping[str, str]) -> tuple[str, str] | None:
    variable, own, named = _variable(field), PREFIX + field.name.upper(), _named(field)
    found = _find(variable, env)
    if found is None or named is None:
        return found if variable == own else _find(own, env)
    if _find(own, env) is not None:
        raise ConfigError([f"{variable} and {own} are both set; set only one of them"])
    text, source = found
    return (text.strip() + named.unit if _NUMBER.fullmatch(text.strip()) else text), source


def _find(variable: str, env: Mapping[str, str]) -> tuple[str, str] | None:
    """The text and the name of the variable it came from; ``None`` when neither is set."""
    direct, path = env.get(variable), env.get(f"{variable}_FILE")
    if path is None:
        return None if direct is None else (direct, variable)
    if direct is not None:
        raise ConfigError([f"{variable} and {variable}_FILE are both set; set only one of them"])
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n"), f"{variable}_FILE"
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a text file"
        raise ConfigError(
            [f"{variable}_FILE: cannot read the file ({reason}); set it to the path of a text file"]
        ) from None


def _read(kind: Any, text: str, variable: str) -> Any:
    try:
        return parse(text, kind, {Secret: Secret})
    except InvalidValue as wrong:
        raise ConfigError([f"{variable}: {wrong}"]) from None


def _expectation(kind: Any) -> str:
    bare, marks, _ = unwrap(kind)
    url = next((mark for mark in marks if isinstance(mark, Url)), None)
    if url is not None:
        return f"a URL like {url.example}"
    names = {Secret: "a secret", int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
    return names.get(bare, "a duration like 30s" if bare is timedelta else "a text")


def _shown(value: object, named: Named | None = None) -> str:
    match value:
        case None:
            return "(not set)"
        case timedelta() if named and named.unit == "ms":
            return f"{value.total_seconds() * 1000:g}"
        case timedelta():
            return show_duration(value)
        case bool():
            return str(value).lower()
        case tuple() | frozenset():
            return ",".join(sorted(map(str, value))) or "(none)"
        case _:
            return redact_secrets(str(value))
