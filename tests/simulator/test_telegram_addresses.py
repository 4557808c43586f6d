"""Media named by an address: nothing is fetched, so an address gives what a test put there, or a refusal."""

import base64

import pytest
from autopost_simulator.telegram.refusal import RefusedInside
from autopost_simulator.telegram.storage.remote import RemotePage, Web
from harness.telegram_media import png

CHANNEL = -1001000000001
PICTURE = "https://pictures.example.org/a/b.png"


@pytest.mark.parametrize(
    ("method", "content_type", "words"),
    [
        ("sendPhoto", "image/png", None),
        ("sendPhoto", "text/html", "wrong type of the web page content"),
        ("sendDocument", "application/pdf", None),
        ("sendDocument", "image/png", "wrong type of the web page content"),
        ("sendVideo", "video/mp4", None),
        ("sendVideo", "video/webm", "wrong type of the web page content"),
        ("sendAnimation", "image/gif", None),
        ("sendAudio", "audio/mpeg", None),
    ],
)
async def test_an_address_gives_what_was_put_there(client, method, content_type, words):
    body = base64.b64encode(png()).decode()
    await client.control("web", {"url": PICTURE, "content_type": content_type, "body": body})

    answer = await client.telegram(method, chat_id=CHANNEL, **{method.removeprefix("send").lower(): PICTURE})

    assert answer.body.get("description") == (words and f"Bad Request: {words}")


@pytest.mark.parametrize(
    ("page", "url", "words"),
    [
        ({}, "https://pictures.example.org/gone.png", "failed to get HTTP URL content"),
        ({"status": 404}, PICTURE, "failed to get HTTP URL content"),
        ({"body": ""}, PICTURE, "wrong type of the web page content"),
        ({"body": base64.b64encode(b"no picture").decode()}, PICTURE, "IMAGE_PROCESS_FAILED"),
        ({}, "http://localhost/a.png", "wrong HTTP URL specified"),
        ({}, "http://127.0.0.1/a.png", "wrong HTTP URL specified"),
        ({}, "http://192.168.0.1/a.png", "wrong HTTP URL specified"),
        ({}, "pictures.example.org/a.png", "failed to get HTTP URL content"),
        ({}, "ftp://example.org/a.png", "invalid file HTTP URL specified: Unsupported URL protocol"),
        ({}, "http://[::1/a.png", "invalid file HTTP URL specified: Wrong IPv6 address specified in the URL"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value,
)
async def test_an_address_that_gives_nothing_is_refused(client, page, url, words):
    await client.control("web", {"url": PICTURE, "content_type": "image/png", "body": "aGk=", **page})

    answer = await client.telegram("sendPhoto", chat_id=CHANNEL, photo=url)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")


@pytest.mark.parametrize(("kind", "most"), [("photo", 5 * 1024 * 1024), ("video", 20 * 1024 * 1024)])
def test_an_address_may_give_less_than_an_upload(kind, most):
    web = Web()
    served = {"photo": "image/png", "video": "video/mp4"}[kind]
    web.register(RemotePage(url=PICTURE, content_type=served, body=bytes(most)))
    web.register(RemotePage(url=f"{PICTURE}?more", content_type=served, body=bytes(most + 1)))

    assert len(web.fetch(PICTURE, kind).body) == most
    with pytest.raises(RefusedInside, match="failed to get HTTP URL content"):
        web.fetch(f"{PICTURE}?more", kind)


async def test_a_wrong_page_is_refused_with_its_reason(client):
    answer = await client.control("web", {"url": PICTURE})

    assert (answer.status, "content_type" in answer.body["error"]) == (400, True)
