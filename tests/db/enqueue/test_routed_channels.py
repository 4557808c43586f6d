"""Which channels a post goes to: filter over tags, mode over media, and the post's own hints, which only narrow."""

import json

import pytest
from autopost_contracts.payload import PostRequest
from autopost_ingest.posts.normalize import routing_tags
from db.support.builders import Tenant

TEXT = {"type": "text"}
MEDIA = {"type": "media"}

# name: (channel, post, does it go there?)
TABLE = {
    "no filter takes all": ({}, {"tags": ["x"]}, True),
    "no filter takes a post without tags": ({}, {"tags": []}, True),
    "an empty filter takes all": ({"route_filter": {}}, {"tags": []}, True),
    "empty lists ask nothing": (
        {"route_filter": {"include_any": [], "include_all": [], "exclude": []}},
        {"tags": []},
        True,
    ),
    "include_any, one of them": ({"route_filter": {"include_any": ["a", "b"]}}, {"tags": ["b", "c"]}, True),
    "include_any, none of them": ({"route_filter": {"include_any": ["a", "b"]}}, {"tags": ["c"]}, False),
    "include_any, no tags": ({"route_filter": {"include_any": ["a"]}}, {"tags": []}, False),
    "include_all, all of them": ({"route_filter": {"include_all": ["a", "b"]}}, {"tags": ["b", "c", "a"]}, True),
    "include_all, one missing": ({"route_filter": {"include_all": ["a", "b"]}}, {"tags": ["a"]}, False),
    "include_all, no tags": ({"route_filter": {"include_all": ["a"]}}, {"tags": []}, False),
    "exclude, none of them": ({"route_filter": {"exclude": ["a"]}}, {"tags": ["b"]}, True),
    "exclude, one of them": ({"route_filter": {"exclude": ["a", "z"]}}, {"tags": ["a", "b"]}, False),
    "exclude, no tags": ({"route_filter": {"exclude": ["a"]}}, {"tags": []}, True),
    "exclude wins over include": (
        {"route_filter": {"include_any": ["a"], "exclude": ["b"]}},
        {"tags": ["a", "b"]},
        False,
    ),
    "all three at once": (
        {"route_filter": {"include_any": ["a", "x"], "include_all": ["b"], "exclude": ["z"]}},
        {"tags": ["a", "b"]},
        True,
    ),
    "a filter looks at the post's tags, not at the channel's": (
        {"tags": ["a"], "route_filter": {"include_any": ["a"]}},
        {"tags": []},
        False,
    ),
    "a disabled channel takes nothing": ({"enabled": False}, {}, False),
    "a paused channel takes its posts, for later": ({"paused_until": "infinity"}, {}, True),
    "a text channel takes text": ({"send_mode": "text"}, {"payload": TEXT}, True),
    "a text channel takes no media": ({"send_mode": "text"}, {"payload": MEDIA}, False),
    "a media channel takes media": ({"send_mode": "media"}, {"payload": MEDIA}, True),
    "a media channel takes no text": ({"send_mode": "media"}, {"payload": TEXT}, False),
    "a mixed channel takes media": ({"send_mode": "mixed"}, {"payload": MEDIA}, True),
    "a hint by channel tag, matched": ({"tags": ["vip"]}, {"routing": {"channel_tags": ["vip", "other"]}}, True),
    "a hint by channel tag, not matched": ({"tags": ["vip"]}, {"routing": {"channel_tags": ["other"]}}, False),
    "a hint by channel tag, no tags there": ({}, {"routing": {"channel_tags": ["vip"]}}, False),
    "a hint by channel, another": (
        {},
        {"routing": {"channels": ["00000000-0000-0000-0000-000000000000"]}},
        False,
    ),
    "a hint is not a tag of the post": (
        {"tags": ["vip"], "route_filter": {"include_any": ["vip"]}},
        {"routing": {"channel_tags": ["vip"]}},
        False,
    ),
    "a hint never leads past a filter": (
        {"tags": ["vip"], "route_filter": {"exclude": ["a"]}},
        {"tags": ["a"], "routing": {"channel_tags": ["vip"]}},
        False,
    ),
    "empty hints ask nothing": ({}, {"routing": {"channels": [], "channel_tags": []}}, True),
}


async def route(tenant: Tenant, post: dict) -> list:
    query = """
        SELECT unnest(r.channel_ids)
        FROM route_posts($1, parse_posts($2))
        CROSS JOIN unnest(routes) AS r"""
    return [channel for (channel,) in await tenant.db.fetch(query, tenant.workspace, json.dumps([post]))]


async def test_a_post_goes_where_filter_mode_and_hints_let_it(tenant):
    found = {}

    for name, (columns, post, _) in TABLE.items():
        paused = columns.get("paused_until")
        channel = await tenant.channel(**{key: value for key, value in columns.items() if key != "paused_until"})
        if paused:
            await tenant.set_channel(channel, "paused_until = 'infinity'")
        found[name] = channel in await route(tenant, {"payload": TEXT, "tags": [], **post})

    assert found == {name: expected for name, (_, _, expected) in TABLE.items()}


async def test_a_hint_by_channel_narrows_to_it(tenant):
    wanted, _other = await tenant.channels(2)

    assert await route(tenant, {"payload": TEXT, "tags": [], "routing": {"channels": [str(wanted)]}}) == [wanted]


async def test_a_hint_by_channel_never_leads_to_a_channel_that_the_filter_keeps(tenant):
    channel = await tenant.channel(route_filter={"include_any": ["a"]})

    assert await route(tenant, {"payload": TEXT, "tags": [], "routing": {"channels": [str(channel)]}}) == []


async def test_a_post_stays_in_its_workspace(tenant):
    await tenant.channel()
    neighbour = await Tenant.create(tenant.db)
    await neighbour.channel()

    answer = await tenant.enqueue()

    assert answer["enqueued"] == 1
    assert await neighbour.deliveries() == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["news", "news"], ["news"]),
        (["b", "a", "b"], ["a", "b"]),
        ([" News ", "news", "\tsale\n"], ["news", "sale"]),
        (["НОВОСТИ Ё", "Україна Ї", "Ўсход"], ["новости ё", "україна ї", "ўсход"]),
        (["\u00a0news\u2003", "sale\x1f\u3000"], ["news", "sale"]),
        (["ΟΔΟΣ", "οδος"], ["οδοσ"]),
        (["", " "], []),
        ([], []),
    ],
)
async def test_tags_of_a_channel_are_kept_as_those_of_posts(tenant: Tenant, given: list[str], kept: list[str]) -> None:
    channel = await tenant.channel(tags=given)
    inserted = (await tenant.state(channel))["tags"]
    await tenant.set_channel(channel, "tags = '{}'")

    await tenant.set_channel(channel, "tags = $3", given)

    assert inserted == (await tenant.state(channel))["tags"] == kept
    assert kept == list(routing_tags(PostRequest(tags=tuple(given)))[0])


async def test_cyrillic_tags_are_lowered_in_any_locale(tenant: Tenant) -> None:
    """A database of the locale C knows no letters but those of ASCII."""
    given = "SELECT canonical_tags(ARRAY['Новости', ' ЁЖ\u00a0'] COLLATE \"C\")"

    assert await tenant.db.fetchval(given) == ["новости", "ёж"]
    assert not await tenant.db.fetchval("SELECT lower('Ж' COLLATE \"C\") = 'ж'")
