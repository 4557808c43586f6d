"""From a reference to a token, without a restart when it moves."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from autopost_contracts.ids import WorkspaceId
from autopost_dispatcher.credentials import Credentials
from autopost_dispatcher.gateway import Credential

from dispatcher.claims import WORKSPACE


class Bindings:
    def __init__(self, secret_ref: str | None) -> None:
        self.secret_ref = secret_ref
        self.asked = 0

    async def read_credential(self, workspace: WorkspaceId, platform: str, auth_ref: str) -> Credential | None:
        self.asked += 1
        if self.secret_ref is None:
            return None
        return Credential(auth_ref=auth_ref, secret_ref=self.secret_ref, sealed=None, rotated_at=datetime.now(UTC))


async def test_a_token_is_found_in_the_environment_and_asked_for_once() -> None:
    bindings = Bindings("env:BOT_TOKEN")
    credentials = Credentials(bindings, {"BOT_TOKEN": "1:a"})

    tokens = [await credentials.token(WORKSPACE, "telegram", "bot") for _ in range(3)]

    assert [token.reveal() for token in tokens if token] == ["1:a"] * 3
    assert bindings.asked == 1


async def test_a_token_is_found_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("1:a\n")

    token = await Credentials(Bindings(f"file:{tmp_path / 'token'}"), {}).token(WORKSPACE, "telegram", "bot")

    assert token is not None
    assert token.reveal() == "1:a"


@pytest.mark.parametrize("secret_ref", [None, "env:MISSING", "env:EMPTY", "file:/nowhere/at/all"])
async def test_a_credential_that_leads_nowhere_is_none_and_is_asked_for_again(secret_ref: str | None) -> None:
    bindings = Bindings(secret_ref)
    credentials = Credentials(bindings, {"EMPTY": ""})

    assert [await credentials.token(WORKSPACE, "telegram", "bot") for _ in range(2)] == [None, None]
    assert bindings.asked == 2
