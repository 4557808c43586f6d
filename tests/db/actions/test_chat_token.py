"""The token of a chat is the same in SQL and in Python."""

import pytest
from autopost_contracts.ids import WorkspaceId, chat_token
from db.support.builders import Tenant


@pytest.mark.parametrize("chat_id", ["7", "-100123", "a/b.*> \\ '", "имя", "🙂" * 200, "\u0301", " "])
async def test_sql_and_python_give_a_chat_the_same_token(tenant: Tenant, chat_id: str) -> None:
    found = await tenant.db.fetchval("SELECT chat_token($1, $2)", tenant.workspace, chat_id)

    assert found == chat_token(WorkspaceId(tenant.workspace), chat_id)
