"""No secret turns up anywhere, whatever the platforms do: each is looked for in all that a system leaves behind."""

import asyncio
import base64
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from autopost_cli.development import WORKSPACE
from autopost_runtime.secrets.sealing import new_key
from autopost_runtime.storage.objects import Objects
from harness.buckets import Bucket
from harness.eventually import eventually
from harness.telegram_media import png

from e2e import canaries
from e2e.conftest import StartSystem
from e2e.system import System

pytestmark = pytest.mark.time_limit(480)

PLATFORMS = ("telegram", "max")
PLACES = ("env", "file", "sealed")
TOKENS = {
    "telegram env": "7000001:AAcanary-telegram_env-canary_0123456",
    "telegram file": "7000002:AAcanary-telegram_file-canary_012345",
    "telegram sealed": "7000003:AAcanary-telegram_sealed-canary_0123",
    "max env": "f9canary+max/env-canary_0123456789=",
    "max file": "f9canary+max/file-canary_0123456789=",
    "max sealed": "f9canary+max/sealed-canary_0123456789=",
}
ENDPOINT_SECRET = "canary+endpoint/secret-canary_0123456789="
KINDS: dict[str, dict[str, Any]] = {
    "rate limited": {"status": 429, "retry_after": 1},
    "rate limited without a word": {"status": 429},
    "unauthorized": {"status": 401},
    "forbidden": {"status": 403},
    "server error": {"status": 500},
    "page of a gateway": {"html": 502},
    "accepted behind a page": {"html": 504, "accept": True},
    "hanging": {"hang": True},
    "reset before": {"reset": "before"},
    "reset after": {"reset": "after"},
    "garbage": {"garbage": True},
    "dripping": {"drip": 0.0005},
    "dripping for too long": {"drip": 0.2},
}
MEDIA_FAULTS = [
    {"name": f"{method} {kind}", "method": method, "times": 1, "effect": KINDS[kind]}
    for method in ("sendPhoto", "POST /uploads", "POST /upload/image")
    for kind in ("page of a gateway", "reset before", "reset after", "garbage", "hanging")
]
"""On the way of a picture, whatever chat it is for: one after the other."""
HONEST = "honest"
IN_TIME = timedelta(seconds=90)


def searched() -> dict[str, str]:
    """By what nobody can guess of each: the digits of a Telegram token are the bot's public id."""
    return {name: token.rpartition(":")[2] for name, token in TOKENS.items()} | {"endpoint": ENDPOINT_SECRET}


async def bind(system: System, platform: str, place: str, folder: Path, key: str) -> bytes:
    """What the command said."""
    token = TOKENS[f"{platform} {place}"]
    where = ["--sealed"]
    if place == "env":
        where = ["--env", f"CANARY_{platform.upper()}"]
    elif place == "file":
        (folder / platform).write_text(f"{token}\n")
        where = ["--file", str(folder / platform)]
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "autopost_cli", "auth", "bind", *where, "--platform", platform, "--json"),
        *("--auth-ref", f"canary-{place}", "--workspace", WORKSPACE, "--operator", "ann", "--reason", "canaries"),
        env={"AUTOPOST_DATABASE_URL": system.places["database_url"], "AUTOPOST_SECRETS_KEY": key},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    said = await process.communicate(token.encode() if place == "sealed" else b"")
    assert process.returncode == 0, said
    return b"".join(said)


def scripted(names: list[str]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Platform, place of the token, title and effect: each kind for every token, each known refusal for one."""
    for platform in PLATFORMS:
        for place in PLACES:
            yield platform, place, HONEST, {}
            for kind, effect in KINDS.items():
                yield platform, place, kind, effect
            echo = f"refused for {TOKENS[f'{platform} {place}']}"
            yield platform, place, "echo", {"status": 400, "description": echo}
    places = cycle(PLACES)
    for name in names:
        yield name.partition(".")[0], next(places), name, {"catalogue": name}


async def set_the_scene(system: System) -> int:
    """A channel of its own for everything that can go wrong, so that none waits for another; how many."""
    names = (await system.http.get(f"{system.places['simulator']}/_sim/catalogue")).json()["names"]
    scenes = list(enumerate(scripted(names), start=1))
    await system.database.execute("UPDATE channels SET enabled = false WHERE workspace_id = $1", UUID(WORKSPACE))
    await system.database.executemany(
        "INSERT INTO channels (workspace_id, platform, target_id, auth_ref, rate_group, title, rate_rps) "
        "VALUES ($1, $2, $3, $4, $5, $6, NULL)",
        [
            (UUID(WORKSPACE), platform, chat(platform, number), f"canary-{place}", f"group {number}", title)
            for number, (platform, place, title, _) in scenes
        ],
    )
    await system.control("tokens", [{"platform": n.split()[0], "token": t, "limits": []} for n, t in TOKENS.items()])
    await system.control(
        "chats",
        [{"platform": platform, "id": chat(platform, number), "limits": []} for number, (platform, *_) in scenes],
    )
    await system.control(
        "faults",
        [
            {"name": str(number), "platform": platform, "chat": chat(platform, number), "times": 1, "effect": effect}
            for number, (platform, _, _, effect) in scenes
            if effect
        ],
    )
    await system.database.execute(
        "INSERT INTO workspace_endpoints (workspace_id, kind, secret_hash, ingress_rps) "
        "VALUES ($1, 'webhook_push', $2, 1000)",
        UUID(WORKSPACE),
        sha256(ENDPOINT_SECRET.encode()).hexdigest(),
    )
    return len(scenes)


def chat(platform: str, number: int) -> str:
    return str((-1007000000000 if platform == "telegram" else -77000000000000) - number)


async def struck(system: System) -> set[str]:
    """The faults that have happened."""
    answer = await system.http.get(f"{system.places['simulator']}/_sim/faults")
    return {fault["name"] for fault in answer.json()["faults"] if fault["struck"]}


async def be_refused(system: System) -> None:
    """Every way in which a sender gets it wrong while its secret is right, or is in the wrong place."""
    url = f"{system.places['ingest']}/v1/posts"
    right = {"Authorization": f"Bearer {ENDPOINT_SECRET}"}
    statuses = [
        (await system.http.post(url, headers=headers, content=body)).status_code
        for headers, body in (
            (right, b"{"),
            (right, b'{"text": ""}'),
            (right, b'{"text": 7}'),
            ({**right, "Content-Encoding": "gzip"}, b"{}"),
            ({"Authorization": f"Basic {ENDPOINT_SECRET}"}, b"{}"),
            ({"Authorization": ENDPOINT_SECRET}, b"{}"),
            ({"Authorization": f"Bearer {ENDPOINT_SECRET}x"}, b"{}"),
        )
    ]
    misplaced = (await system.http.post(url, params={"secret": ENDPOINT_SECRET}, json={"text": "x"})).status_code
    assert all(400 <= status < 500 for status in (*statuses, misplaced))


async def look_around(system: System) -> None:
    """What anybody may ask of the services."""
    asked = [f"{base}/{page}" for base in system.places["health"].values() for page in ("healthz", "readyz", "metrics")]
    for url in (*asked, *(f"{base}/nowhere" for base in system.stack.urls.values())):
        await system.http.get(url)


async def test_no_secret_turns_up_anywhere_after_every_fault_there_is(
    start_system: StartSystem, objects: Objects, s3: Bucket, nats_url: str, nats_namespace: str, tmp_path: Path
) -> None:
    key = new_key().reveal()
    system = await start_system(
        AUTOPOST_LOG_LEVEL="debug",
        AUTOPOST_TRACE_DIR=str(tmp_path / "traces"),
        AUTOPOST_PROVIDER_TIMEOUT="2s",
        AUTOPOST_SECRETS_KEY=key,
        AUTOPOST_S3_BUCKET=s3.bucket,
        CANARY_TELEGRAM=TOKENS["telegram env"],
        CANARY_MAX=TOKENS["max env"],
    )
    answers = canaries.record_answers(system.http, other_than=system.places["simulator"])
    (tmp_path / "tokens").mkdir()
    said = await asyncio.gather(
        *(bind(system, platform, place, tmp_path / "tokens", key) for platform in PLATFORMS for place in PLACES)
    )
    channels = await set_the_scene(system)
    faults = channels - len(PLATFORMS) * len(PLACES)

    async with canaries.overheard(nats_url, nats_namespace) as bus:
        await be_refused(system)
        posted = await system.post(secret=ENDPOINT_SECRET, text="canaries", source_ref="first")
        again = await system.post(secret=ENDPOINT_SECRET, text="canaries", source_ref="first")

        async def all_tried() -> bool:
            waiting = set(await system.statuses()) & {"queued", "claimed", "sending"}
            return not waiting and len(await struck(system)) == faults

        await eventually(all_tried, within=IN_TIME)
        await system.control("faults", MEDIA_FAULTS)
        picture = await system.store(objects, png(), "photo", "image/png", "canary.png")
        shown = await system.post(secret=ENDPOINT_SECRET, text="canaries", media=[picture])

        async def all_troubled() -> bool:
            return len(await struck(system)) == faults + len(MEDIA_FAULTS)

        await eventually(all_troubled, within=IN_TIME)
        await look_around(system)
    for service in ("dispatcher", "ingest", "monitor", "bot"):
        await system.stack.stop(service)
    haystacks = {
        "logs": canaries.files(tmp_path / "stack" / "logs", other_than="simulator.log"),
        "spans": canaries.files(tmp_path / "traces"),
        "events": await canaries.events(system.database),
        "answers": b"\n".join(answers),
        "command": b"\n".join(said),
        "dump": await canaries.dump(system.places["database_url"]),
        "bus": b"\n".join(bus),
        "streams": await canaries.streams(nats_url, nats_namespace),
        "objects": await canaries.objects(s3),
    }

    secrets = searched() | {"sealing key": key, "S3": s3.secret_key}
    assert (posted.status_code, posted.json()["channels"]["enqueued"], again.status_code) == (202, channels, 200)
    assert shown.json()["channels"]["enqueued"] > len(PLATFORMS) * len(PLACES)
    assert (await system.statuses())["sent"] >= len(PLATFORMS) * len(PLACES)
    assert [place for place, sign in SIGNS.items() if sign not in haystacks[place]] == []
    assert canaries.hits(secrets, haystacks) == []


SIGNS = {
    "logs": b"delivery.attempted",
    "spans": b"telegram sendPhoto",
    "events": b"failed_permanent",
    "answers": b"trace_id",
    "command": b'"verdict":"bound"',
    "dump": b"canary-sealed",
    "bus": b"wakeup.dispatch",
    "streams": b"audit.",
    "objects": b"provider_answer",
}
"""That each was really searched: what must be in it."""


@pytest.mark.parametrize(
    "shown",
    [
        lambda secret: secret,
        lambda secret: secret.encode().hex(),
        lambda secret: secret.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D"),
        lambda secret: secret.replace("+", "%2b").replace("/", "%2f").replace("=", "%3d"),
        *(
            lambda secret, before=before: base64.b64encode(f"{before}{secret} and more".encode()).decode()
            for before in ("", "u", "me")
        ),
        lambda secret: base64.urlsafe_b64encode(f"user:{secret}".encode()).decode(),
    ],
)
@pytest.mark.parametrize("name", list(searched()))
def test_a_planted_secret_is_found_in_whatever_form_it_is_shown(shown: Any, name: str) -> None:
    secret = searched()[name]

    found = canaries.hits({name: secret}, {"log": f"something {shown(secret)}!".encode(), "clean": b"nothing"})

    assert found
    assert all(hit.startswith(f"{name} in log") for hit in found)
