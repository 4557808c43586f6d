"""A sealed secret opens with its key and in its place, and nowhere else."""

import base64
import os
from pathlib import Path

import pytest
from autopost_runtime.config.load import ConfigError, Secret
from autopost_runtime.secrets.sealing import Label, SealingKeys, Unopenable, new_key, read_keys

TOKEN = Secret("123456789:AAF0canary_canary-canary_canary0123")
LABEL = Label("0de00000-0000-4000-8000-000000000001", "telegram", "news")


def key() -> bytes:
    return os.urandom(32)


def test_what_was_sealed_opens_again() -> None:
    keys = SealingKeys(key())

    assert keys.open(keys.seal(TOKEN, LABEL), LABEL) == TOKEN


def test_nothing_of_the_secret_is_in_what_is_stored() -> None:
    sealed = SealingKeys(key()).seal(TOKEN, LABEL)

    assert TOKEN.reveal().encode() not in sealed
    assert len(sealed) == 1 + 12 + len(TOKEN.reveal()) + 16


def test_the_same_secret_is_sealed_differently_each_time() -> None:
    keys = SealingKeys(key())

    sealed = [keys.seal(TOKEN, LABEL) for _ in range(100)]

    assert len({one[1:13] for one in sealed}) == 100
    assert {one[:1] for one in sealed} == {b"\x01"}


@pytest.mark.parametrize(
    "elsewhere",
    [
        Label("5f000000-0000-4000-8000-000000000002", "telegram", "news"),
        Label(LABEL.workspace_id, "max", "news"),
        Label(LABEL.workspace_id, "telegram", "other"),
        Label(LABEL.workspace_id, 'telegram","news', ""),
        Label(f"{LABEL.workspace_id}telegram", "", "news"),
    ],
)
def test_a_row_copied_elsewhere_does_not_open(elsewhere: Label) -> None:
    keys = SealingKeys(key())

    with pytest.raises(Unopenable, match="another workspace or name"):
        keys.open(keys.seal(TOKEN, LABEL), elsewhere)


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(Unopenable, match="another key"):
        SealingKeys(key(), key()).open(SealingKeys(key()).seal(TOKEN, LABEL), LABEL)


def test_every_changed_byte_is_noticed() -> None:
    keys = SealingKeys(key())
    sealed = keys.seal(TOKEN, LABEL)

    for place in range(len(sealed)):
        damaged = bytearray(sealed)
        damaged[place] ^= 1
        with pytest.raises(Unopenable):
            keys.open(bytes(damaged), LABEL)


@pytest.mark.parametrize(
    "sealed", [b"", b"\x01", b"\x01" + bytes(28), b"\x02" + bytes(60), b"plain text, never sealed at all"]
)
def test_what_was_never_sealed_is_told_apart(sealed: bytes) -> None:
    with pytest.raises(Unopenable, match="not a sealed secret of version 1"):
        SealingKeys(key()).open(sealed, LABEL)


def test_a_key_is_replaced_while_the_old_one_still_opens() -> None:
    old, new = new_key().reveal(), new_key().reveal()
    before = read_keys({"AUTOPOST_SECRETS_KEY": old})
    during = read_keys({"AUTOPOST_SECRETS_KEY": new, "AUTOPOST_SECRETS_KEY_OLD": old})
    after = read_keys({"AUTOPOST_SECRETS_KEY": new})
    assert before is not None
    assert during is not None
    assert after is not None

    assert during.open(before.seal(TOKEN, LABEL), LABEL) == TOKEN
    assert after.open(during.seal(TOKEN, LABEL), LABEL) == TOKEN
    with pytest.raises(Unopenable):
        after.open(before.seal(TOKEN, LABEL), LABEL)


def test_a_key_may_lie_in_a_file(tmp_path: Path) -> None:
    fresh = new_key().reveal()
    (tmp_path / "key").write_text(f"{fresh}\n")

    from_file = read_keys({"AUTOPOST_SECRETS_KEY_FILE": str(tmp_path / "key")})
    direct = read_keys({"AUTOPOST_SECRETS_KEY": fresh})

    assert from_file is not None
    assert direct is not None
    assert from_file.open(direct.seal(TOKEN, LABEL), LABEL) == TOKEN


def test_without_a_key_there_are_none() -> None:
    assert read_keys({}) is None
    assert read_keys({"AUTOPOST_SECRETS_KEY": ""}) is None


NO_KEYS = ["short", "ключ", "=" * 44, base64.b64encode(bytes(31)).decode(), f"!{base64.b64encode(bytes(32)).decode()}"]


@pytest.mark.parametrize("text", NO_KEYS)
@pytest.mark.parametrize("variable", ["AUTOPOST_SECRETS_KEY", "AUTOPOST_SECRETS_KEY_OLD"])
def test_a_key_that_is_none_is_refused_by_name_and_not_shown(variable: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"{variable}: expected the base64 of 32 bytes") as refused:
        read_keys({"AUTOPOST_SECRETS_KEY": new_key().reveal(), variable: text})

    assert text not in str(refused.value)


def test_an_old_key_alone_is_refused() -> None:
    with pytest.raises(ConfigError, match="AUTOPOST_SECRETS_KEY is not set"):
        read_keys({"AUTOPOST_SECRETS_KEY_OLD": new_key().reveal()})
