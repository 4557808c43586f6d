"""The diagram of a delivery's states is what the database allows."""

import re
from itertools import product

import pytest
from docs.support.documents import read
from harness.databases import Database

TRANSITION = re.compile(r"^ {4}(?P<old>\w+|\[\*\]) --> (?P<new>\w+|\[\*\])", re.MULTILINE)
OUTSIDE = "[*]"


@pytest.fixture(scope="module")
def drawn() -> set[tuple[str, str]]:
    (diagram,) = re.findall(r"^```mermaid\nstateDiagram-v2\n(.+?)^```", read("docs/architecture.md"), re.M | re.S)
    return {(arrow["old"], arrow["new"]) for arrow in TRANSITION.finditer(diagram)}


async def statuses(database: Database) -> list[str]:
    return [row[0] for row in await database.pool.fetch("SELECT unnest(enum_range(NULL::delivery_status))::text")]


async def test_the_diagram_has_every_legal_transition_and_no_other(
    database: Database, drawn: set[tuple[str, str]]
) -> None:
    legal = {
        (old, new)
        for old, new in product(await statuses(database), repeat=2)
        if await database.pool.fetchval("SELECT is_legal_transition($1, $2)", old, new)
    }

    assert {arrow for arrow in drawn if OUTSIDE not in arrow} == legal


async def test_the_diagram_ends_where_no_transition_leads_on(database: Database, drawn: set[tuple[str, str]]) -> None:
    leading_on = {old for old, new in drawn if new != OUTSIDE}

    assert {old for old, new in drawn if new == OUTSIDE} == set(await statuses(database)) - leading_on
