"""Uploads and attachments of MAX: links, pieces, tokens, what may stand together and for how long."""

import hashlib
import struct

import aiohttp
import pytest
from autopost_simulator.max.assembly import Assembly
from autopost_simulator.max.settings import MaxSettings
from autopost_simulator.max.upload.files import MaxFiles
from autopost_simulator.world import new_bot

CHANNEL = -7001
MAX = "max-token"
BYTES = b"\x89PNG " + bytes(range(256)) * 8
NAMES = {"image": "a.png", "video": "a.mp4", "audio": "a.mp3", "file": "a.pdf"}


async def link(client, kind, token=MAX):
    answer = await client.max("POST", f"/uploads?type={kind}", token=token)
    assert answer.status == 200, answer.body
    return answer.body


async def push(client, url, data=BYTES, name="a.png", field="data"):
    form = aiohttp.FormData()
    form.add_field(field, data, filename=name)
    return await client.ask("POST", url.removeprefix(client.base), data=form)


async def push_piece(client, url, first, last, total, data, name="a.mp4"):
    headers = {
        "Content-Range": f"bytes {first}-{last}/{total}",
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Type": "application/x-binary; charset=x-user-defined",
    }
    return await client.ask("POST", url.removeprefix(client.base), data=data, headers=headers)


async def uploaded(client, kind, token=MAX, data=BYTES):
    """The attachment token, wherever this kind of media gets it from."""
    opened = await link(client, kind, token)
    answer = await push(client, opened["url"], data, NAMES[kind])
    assert answer.status == 200, answer.body
    if kind == "image":
        return next(iter(answer.body["photos"].values()))["token"]
    return answer.body["token"] if kind == "file" else opened["token"]


def media(kind, token):
    return {"type": kind, "payload": {"token": token}}


async def send(client, *attachments, token=MAX, **body):
    body = {"attachments": list(attachments), **body}
    return await client.max("POST", f"/messages?chat_id={CHANNEL}", token=token, json=body)


KEYBOARD = {
    "type": "inline_keyboard",
    "payload": {"buttons": [[{"type": "callback", "text": "a", "payload": "p"}]]},
}


async def test_a_picture_gets_its_token_from_the_upload_host(client):
    opened = await link(client, "image")
    answer = await push(client, opened["url"])

    assert set(opened) == {"url"}
    assert set(answer.body) == {"photos"}
    assert all(set(photo) == {"token"} for photo in answer.body["photos"].values())


async def test_a_file_gets_its_token_from_the_upload_host(client):
    opened = await link(client, "file")
    answer = await push(client, opened["url"], name="a.pdf")

    assert set(opened) == {"url"}
    assert answer.headers["Content-Type"] == "application/json"
    assert set(answer.body) == {"fileId", "token"}


@pytest.mark.parametrize("kind", ["video", "audio"])
async def test_video_and_audio_get_their_token_with_the_link_and_xml_from_the_host(client, kind):
    opened = await link(client, kind)
    answer = await push(client, opened["url"], name=NAMES[kind])

    assert set(opened) == {"url", "token"}
    assert answer.headers["Content-Type"].startswith("text/xml")
    assert answer.body == "<retval>1</retval>"


@pytest.mark.parametrize("kind", ["image", "video", "audio", "file"])
async def test_an_attachment_comes_back_with_a_link_to_its_bytes(client, kind):
    token = await uploaded(client, kind)

    answer = await send(client, media(kind, token))

    (shown,) = answer.body["message"]["body"]["attachments"]
    assert (shown["type"], shown["payload"]["token"]) == (kind, token)
    async with client.session.get(shown["payload"]["url"]) as response:
        assert await response.read() == BYTES
    assert [shown.get("filename"), shown.get("size")] == (["a.pdf", len(BYTES)] if kind == "file" else [None, None])


async def test_bytes_are_read_back_by_id_by_token_and_by_checksum(client):
    token = await uploaded(client, "image")
    checksum = hashlib.sha256(BYTES).hexdigest()
    (known,) = (await client.ask("GET", "/_sim/max/files")).body["files"]

    for key in (known["id"], token, checksum):
        async with client.session.get(f"{client.base}/_sim/max/files/{key}") as response:
            assert (response.status, response.headers["ETag"]) == (200, f'"{checksum}"')
            assert await response.read() == BYTES
    assert (known["sha256"], known["size"], known["kept"]) == (checksum, len(BYTES), True)
    (entry,) = await client.log("?method=POST%20/upload/image")
    assert (entry["verdict"], entry["body_sha256"]) == ("accepted", checksum)


async def test_pieces_may_come_in_any_order_and_twice(client):
    opened = await link(client, "video")
    total = len(BYTES)

    late = await push_piece(client, opened["url"], 1000, total - 1, total, BYTES[1000:])
    status = await client.ask("GET", opened["url"].removeprefix(client.base))
    first = await push_piece(client, opened["url"], 0, 499, total, BYTES[:500])
    again = await push_piece(client, opened["url"], 0, 499, total, BYTES[:500])
    last = await push_piece(client, opened["url"], 500, 999, total, BYTES[500:1000])

    assert [late.status, first.status, again.status, last.status] == [201, 201, 201, 200]
    assert (status.body, again.body) == (f"0/{total}", f"0-499/{total}")
    assert last.body == "<retval>1</retval>"
    (known,) = (await client.ask("GET", "/_sim/max/files")).body["files"]
    assert (known["sha256"], known["name"]) == (hashlib.sha256(BYTES).hexdigest(), "a.mp4")


async def test_one_link_takes_one_file(client):
    opened = await link(client, "image")

    first = await push(client, opened["url"])
    second = await push(client, opened["url"])
    unknown = await push(client, opened["url"] + "x")

    assert [first.status, second.status, unknown.status] == [200, 400, 404]


async def test_an_upload_whose_answer_is_lost_before_it_was_taken_leaves_the_link_unused(client):
    opened = await link(client, "image")
    await client.fault({"html": 502}, method="POST /upload/image", times=1)

    lost = await push(client, opened["url"])
    again = await push(client, opened["url"])

    assert [lost.status, again.status] == [502, 200]


@pytest.mark.parametrize("kind", ["photo", "", "sticker"])
async def test_there_are_four_kinds_of_uploads(client, kind):
    answer = await client.max("POST", f"/uploads?type={kind}")

    assert (answer.status, answer.body["code"]) == (400, "proto.payload")


@pytest.mark.parametrize(
    ("kind", "name", "status"),
    [
        ("image", "a.webp", 415),
        ("image", "a.JPEG", 200),
        ("image", "no-extension", 200),
        ("video", "a.avi", 415),
        ("audio", "a.mp4", 415),
        ("file", "a.anything", 200),
    ],
)
async def test_a_name_of_another_kind_is_forbidden(client, kind, name, status):
    opened = await link(client, kind)

    assert (await push(client, opened["url"], name=name)).status == status


@pytest.mark.parametrize(
    ("kind", "total", "status"),
    [
        ("image", 50 * 2**20 + 1, 413),
        ("video", 250 * 2**20 + 1, 413),
        ("audio", 256 * 2**20 + 1, 413),
        ("file", 4 * 2**30 + 1, 413),
        ("file", 4 * 2**30, 201),
    ],
)
async def test_a_file_beyond_the_size_of_its_kind_is_refused(client, kind, total, status):
    opened = await link(client, kind)

    answer = await push_piece(client, opened["url"], 0, 0, total, b"x", NAMES[kind])

    assert answer.status == status


@pytest.mark.parametrize(("width", "height", "status"), [(7680, 7680, 200), (7681, 10, 413), (10, 7681, 413)])
async def test_a_picture_has_at_most_7680_pixels_on_each_side(client, width, height, status):
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + bytes(9)
    opened = await link(client, "image")

    assert (await push(client, opened["url"], header)).status == status


@pytest.mark.parametrize("field", ["data", "file", "a.png"])
async def test_the_field_of_the_file_may_have_any_name_as_clients_give_it(client, field):
    opened = await link(client, "image")

    assert (await push(client, opened["url"], field=field)).status == 200


async def test_what_is_no_file_is_refused(client):
    opened = await link(client, "image")

    no_file = await client.ask(
        "POST", opened["url"].removeprefix(client.base), data=aiohttp.FormData({"data": "x"}, default_to_multipart=True)
    )
    no_range = await client.ask("POST", opened["url"].removeprefix(client.base), data=BYTES)
    wrong_range = await push_piece(client, opened["url"], 0, 9, 10, b"short", "a.png")

    assert [no_file.status, no_range.status, wrong_range.status] == [400, 400, 400]


@pytest.mark.parametrize("kind", ["image", "video", "audio", "file"])
async def test_media_is_not_ready_until_it_is_processed(client, clock, kind):
    await client.control("max/settings", {"processing": {kind: 5}})
    token = await uploaded(client, kind)

    early = await send(client, media(kind, token))
    clock.advance(5)
    in_time = await send(client, media(kind, token))

    assert (early.status, early.body["code"]) == (400, "attachment.not.ready")
    assert in_time.status == 200


async def test_a_video_token_without_its_video_is_not_ready(client):
    opened = await link(client, "video")

    answer = await send(client, media("video", opened["token"]))

    assert answer.body["code"] == "attachment.not.ready"


async def test_tokens_can_be_used_again_until_they_expire(client, clock):
    await client.control("max/settings", {"token_lifetime": 60})
    token = await uploaded(client, "image")

    first = await send(client, media("image", token))
    second = await send(client, media("image", token))
    clock.advance(60)
    late = await send(client, media("image", token))

    assert [first.status, second.status, late.status] == [200, 200, 400]


async def test_one_token_can_be_made_to_expire(client):
    expiring, lasting = await uploaded(client, "file"), await uploaded(client, "file")

    await client.control(f"max/files/{expiring}", {"state": "expired"})

    assert (await send(client, media("file", expiring))).status == 400
    assert (await send(client, media("file", lasting))).status == 200


async def test_a_token_is_of_one_kind_and_one_bot(client):
    await client.control("tokens", {"platform": "max", "token": "other", "limits": []})
    token = await uploaded(client, "image", token="other")

    assert (await send(client, media("file", token), token="other")).status == 400
    assert (await send(client, media("image", token))).status == 400
    assert (await send(client, media("image", token), token="other")).status == 200


async def test_pictures_are_attached_by_token_by_photos_or_by_address(client):
    token = await uploaded(client, "image")
    ways = [{"token": token}, {"photos": {"key": {"token": token}}}, {"url": "https://example.org/a.png"}]

    answers = [await send(client, {"type": "image", "payload": way}) for way in ways]
    both = await send(client, {"type": "image", "payload": {"token": token, "url": "https://example.org/a.png"}})

    assert [answer.status for answer in answers] == [200, 200, 200]
    assert all(
        set(answer.body["message"]["body"]["attachments"][0]["payload"]) == {"photo_id", "token", "url"}
        for answer in answers
    )
    assert both.status == 400


async def test_pictures_and_videos_are_grouped_and_may_have_buttons(client):
    pictures = [media("image", await uploaded(client, "image")) for _ in range(5)]
    videos = [media("video", await uploaded(client, "video")) for _ in range(5)]

    answer = await send(client, *pictures, *videos, KEYBOARD, text="album")

    shown = answer.body["message"]["body"]["attachments"]
    assert [one["type"] for one in shown] == ["inline_keyboard"] + ["image"] * 5 + ["video"] * 5


async def test_twelve_attachments_fit_and_one_more_does_not(client):
    picture = media("image", await uploaded(client, "image"))

    assert (await send(client, *[picture] * 12)).status == 200
    assert (await send(client, *[picture] * 13)).status == 400
    assert (await send(client, *[picture] * 12, KEYBOARD)).status == 400


CONTACT = {"type": "contact", "payload": {"name": "Ann", "vcf_phone": "+7000"}}
STICKER = {"type": "sticker", "payload": {"code": "abc"}}
PLACE = {"type": "location", "latitude": 55.7, "longitude": 37.6}
SHARE = {"type": "share", "payload": {"url": "https://example.org"}}


@pytest.mark.parametrize("alone", [CONTACT, STICKER, "file", "audio"])
async def test_some_attachments_stand_alone_but_for_buttons(client, alone):
    alone = media(alone, await uploaded(client, alone)) if isinstance(alone, str) else alone
    picture = media("image", await uploaded(client, "image"))

    assert (await send(client, alone, KEYBOARD)).status == 200
    assert (await send(client, alone, picture)).status == 400
    assert (await send(client, alone, alone)).status == 400


async def test_places_links_contacts_and_stickers_are_shown(client):
    kinds = [
        (await send(client, one)).body["message"]["body"]["attachments"][0]["type"]
        for one in (CONTACT, STICKER, PLACE, SHARE)
    ]

    assert kinds == ["contact", "sticker", "location", "share"]


@pytest.mark.parametrize(
    "attachment",
    [
        {"type": "data"},
        {"type": "sticker", "payload": {}},
        {"type": "contact", "payload": {}},
        {"type": "share", "payload": {}},
        {"type": "location", "latitude": 1},
        {"type": "image", "payload": {"url": "ftp://example.org/a.png"}},
        {"type": "image", "payload": {"photos": {"key": {}}}},
    ],
)
async def test_an_attachment_that_says_nothing_is_refused(client, attachment):
    answer = await send(client, attachment)

    assert (answer.status, answer.body["code"]) == (400, "proto.payload")


def test_memory_keeps_the_newest_bytes_and_knows_more_files_than_it_keeps(clock):
    bot = new_bot("max", MAX)
    files = MaxFiles(clock, MaxSettings(), bytes_kept=25, files_kept=4)

    for number in range(6):
        files.add("file", bot, f"{number}.txt", sha256=str(number), data=bytes(10), size=10)

    assert [(file["name"], file["kept"]) for file in files.describe()] == [
        ("2.txt", False),
        ("3.txt", False),
        ("4.txt", True),
        ("5.txt", True),
    ]


def test_a_large_file_is_known_by_its_checksum_only():
    large, small = Assembly(kept=10), Assembly(kept=10)

    for _ in range(3):
        large.append(b"12345")
    small.append(b"12345")

    assert (large.data, small.data) == (None, b"12345")
    assert (large.size, large.sha256) == (15, hashlib.sha256(b"12345" * 3).hexdigest())


async def test_a_file_whose_bytes_are_gone_says_so(client):
    await send(client, {"type": "image", "payload": {"url": "https://example.org/a.png"}})

    gone = await client.ask("GET", "/_sim/max/files/1")
    unknown = await client.ask("GET", "/_sim/max/files/2")

    assert (gone.status, unknown.status) == (410, 404)


async def test_a_reset_forgets_files_and_settings(client):
    await uploaded(client, "image")
    await client.control("max/settings", {"processing": {"image": 9}, "token_lifetime": 1})

    await client.control("reset", {})

    assert (await client.ask("GET", "/_sim/max/files")).body == {"files": []}
    settings = (await client.ask("GET", "/_sim/max/settings")).body
    assert (settings["processing"]["image"], settings["token_lifetime"]) == (0.0, None)
