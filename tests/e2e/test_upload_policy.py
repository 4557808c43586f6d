"""An image that MAX takes by URL, from a post to the readers: nobody of ours fetches it."""

from datetime import timedelta
from uuid import UUID

from autopost_cli.development import WORKSPACE
from harness.eventually import eventually
from ingest.support.pictures import PNG, pictures

from e2e.conftest import StartSystem
from e2e.system import System

PLENTY = timedelta(seconds=60)
FAR = "https://pictures.example/cat.png"
"""Nothing on this machine can fetch it."""


async def only(system: System, *titles: str) -> None:
    await system.database.execute(
        "UPDATE channels SET enabled = title = ANY ($2) WHERE workspace_id = $1", UUID(WORKSPACE), titles
    )


async def sent(system: System, count: int) -> None:
    async def arrived() -> bool:
        return (await system.statuses()).get("sent") == count

    await eventually(arrived, within=PLENTY)


async def images_in(system: System, title: str) -> list[str]:
    """Where the images of a MAX chat are, as its bot reads them back."""
    chat = await system.database.fetchval("SELECT target_id FROM channels WHERE title = $1", title)
    answer = await system.http.get(
        f"{system.places['simulator']}/max/messages",
        params={"chat_id": chat},
        headers={"Authorization": "demo-max-token-for-development-only"},
    )
    assert answer.status_code == 200, answer.text
    bodies = [message["body"] for message in answer.json()["messages"]]
    return [one["payload"]["url"] for body in bodies for one in body["attachments"] or () if one["type"] == "image"]


async def test_an_image_reaches_max_by_its_url_under_the_central_policy(start_system: StartSystem) -> None:
    system = await start_system(AUTOPOST_UPLOAD_POLICY_IMAGE="url_allowed")
    await only(system, "Demo MAX 1")

    answer = await system.post(text="hello", media=[{"type": "photo", "url": FAR}])
    await sent(system, 1)

    calls = [call["method"] for call in await system.accepted()]
    fetched = await system.database.fetchval("SELECT count(*) FROM media_fetches")
    assert (answer.status_code, calls, fetched) == (202, ["POST /messages"], 0)
    assert await images_in(system, "Demo MAX 1") == [FAR]


async def test_a_telegram_channel_beside_it_still_gets_the_bytes(start_system: StartSystem) -> None:
    system = await start_system(AUTOPOST_UPLOAD_POLICY_IMAGE="url_allowed", AUTOPOST_FETCH_ALLOW="127.0.0.1/32")
    await only(system, "Demo MAX 1", "Demo Telegram 1")
    async with pictures() as site:
        await system.post(text="hello", media=[{"type": "photo", "url": site.put("/cat.png", PNG)}])
        await sent(system, 2)

    assert site.hits == {"/cat.png": 1}
    assert sorted((call["method"], call["uploads"]) for call in await system.accepted()) == [
        ("POST /messages", 0),
        ("sendPhoto", 1),
    ]
