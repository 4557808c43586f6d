"""What a dry run shows is what the same post then stores: for any post, any settings, down to the hash of the plan."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from harness.full import FULL
from ingest.support.ingest_client import DEMO, DEMO_WORKSPACE, IngestClient

ROUNDS = 40 if FULL else 12
WORDS = [
    "word",
    "Привет",
    "**bold**",
    "<b>b</b>",
    "<u>",
    "a & b",
    "https://a.example/?b=1&c=2",
    "🦊",
    "\n\n",
    "x" * 900,
]
TAGS = ["news", "sale", "night"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"overflow": "split"},
    {"overflow": "truncate", "on_markup": "plain"},
    {"on_markup": "plain", "silent": True},
    {"disable_preview": True, "buttons_text": "⟦"},
    {"caption_above": True, "protect": True},
    {"overflow": "nonsense"},
]
TEMPLATES = {
    "plain": "{{ text }}",
    "titled": "{{ title }}\n{{ text }}{% for tag in tags %} #{{ tag }}{% endfor %}",
    "linked": "{{ text }}\n{% for link in links %}{{ link }}{% endfor %}",
    "broken": "{{ text | date: '%s' }}",
}
FILTERS: list[dict[str, Any] | None] = [
    None,
    {"include_any": ["news"]},
    {"exclude": ["night"]},
    {"include_all": ["sale"]},
]


def some(dice: random.Random, items: list[Any], most: int = 3) -> list[Any]:
    return [dice.choice(items) for _ in range(dice.randint(0, most))]


def a_post(dice: random.Random, stored: list[str]) -> dict[str, Any]:
    media = [
        {"type": "photo", "blob_ref": ref, "caption": " ".join(some(dice, WORDS))} for ref in some(dice, stored, 4)
    ]
    body: dict[str, Any] = {
        "text": " ".join([str(dice.randint(0, 3)), *some(dice, WORDS, 9)]),
        "links": some(dice, ["https://a.example/", "https://b.example/?q=1&r=2"]),
        "media": media if dice.random() < 0.4 else [],
        "buttons": some(dice, [{"text": "Go", "url": "https://a.example/"}], 2),
        "tags": some(dice, TAGS),
        "silent": dice.random() < 0.3,
        "meta": {"title": dice.choice(["T", "<T> & *T*"])},
        "source_ref": f"{dice.random()}",
    }
    if mode := dice.choice([None, "HTML", "Markdown"]):
        body["parse_mode"] = mode
    if dice.random() < 0.2:
        body["scheduled_for"] = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    if dice.random() < 0.2:
        body["routing"] = {"channel_tags": ["even"]}
    return body


async def rearrange(client: IngestClient, dice: random.Random) -> None:
    """Gives a few channels other settings."""
    for _ in range(6):
        await client.sql(
            "UPDATE channels SET settings = $1::text::jsonb, template_ref = $2, route_filter = $3::text::jsonb, "
            "send_mode = $4, enabled = $5 WHERE title = $6",
            msgspec.json.encode(dice.choice(SETTINGS)).decode(),
            dice.choice([None, "absent", *TEMPLATES]),
            None if (chosen := dice.choice(FILTERS)) is None else msgspec.json.encode(chosen).decode(),
            dice.choice(["mixed", "mixed", "text", "media"]),
            dice.random() < 0.9,
            f"Demo {dice.choice(['MAX', 'Telegram'])} {dice.randint(1, 20)}",
        )


@pytest.mark.parametrize("seed", range(4))
async def test_what_is_shown_is_what_is_stored(client: IngestClient, seed: int) -> None:
    dice = random.Random(seed)
    stored = [await client.store(bytes([n]), "image/png", width=3, height=n + 1) for n in range(3)]
    for name, text in TEMPLATES.items():
        await client.sql(
            "INSERT INTO templates (workspace_id, template_id, body, defaults) VALUES ($1, $2, $3, $4)",
            *(DEMO_WORKSPACE, name, text, '{"title": "News"}'),
        )
    known: list[dict[str, Any]] = []
    outcomes = set()

    for _ in range(ROUNDS):
        await rearrange(client, dice)
        body = a_post(dice, stored)
        if known and dice.random() < 0.3:
            body = dice.choice(known) | {"source_ref": f"{dice.random()}"}
        known.append(body)
        outcomes |= await compare(client, body)

    assert outcomes == {"enqueued", "deduped", "validation_failed", "not_routed"}


async def compare(client: IngestClient, body: dict[str, Any]) -> set[str]:
    url, headers = f"{client.url}/v1/posts?dry_run=1", {"Authorization": f"Bearer {DEMO}"}
    shown = (await client.http.post(url, headers=headers, json=body)).json()
    is_new = shown["message_id"] is None
    told = (await client.post(body)).json()

    assert shown["counts"] == told["channels"], body
    assert shown["problems"] == told.get("problems", shown["problems"])
    assert (shown["verdict"] == "refused") == (told["status"] == 422)
    decided = {channel["channel_id"]: channel for channel in shown["channels"]}
    made = await deliveries(client, told["run_id"])
    stored = {name for name, one in decided.items() if one["outcome"] in ("enqueued", "validation_failed")}
    repeated = {name for name in stored if decided[name]["outcome"] == "validation_failed" and not is_new}
    assert stored - repeated <= made.keys() <= stored  # a refusal of known content is stored once a day
    for name, delivery in made.items():
        plan = shown["plans"][decided[name]["profile"]]
        assert delivery["plan_hash"] == decided[name]["plan_hash"] == plan["plan_hash"]
        assert delivery["plan"] == plan["plan"]
        assert delivery["problems"] == (plan["problems"] or None)
        assert (delivery["status"] == "queued") == (decided[name]["outcome"] == "enqueued")
    return {channel["outcome"] for channel in shown["channels"]}


async def deliveries(client: IngestClient, run_id: str) -> dict[str, dict[str, Any]]:
    rows = await client.sql(
        "SELECT coalesce(json_object_agg(d.channel_id, json_build_object('status', d.status, "
        "'plan_hash', d.render_meta -> 'plan_hash', 'plan', r.plan, 'problems', d.last_error -> 'problems')), '{}') "
        "FROM events e JOIN deliveries d USING (workspace_id, delivery_id) "
        "LEFT JOIN renderings r USING (workspace_id, rendering_id) WHERE e.meta ->> 'run_id' = $1",
        run_id,
    )
    found: dict[str, dict[str, Any]] = msgspec.json.decode(rows)
    return found
