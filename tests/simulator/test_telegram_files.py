"""Files: whose an id is, what may be sent as what, and that the bytes can be read back."""

import base64
import hashlib

import pytest
from autopost_simulator.image_size import Picture, picture
from autopost_simulator.telegram.storage import file_ids
from autopost_simulator.telegram.storage.file_ids import FileId, FileIdError
from autopost_simulator.telegram.storage.files import TelegramFile, TelegramFiles
from autopost_simulator.telegram.storage.spool import Spool
from autopost_simulator.world import new_bot
from harness.telegram_media import png, sent_file, upload

TOKEN = "1001:telegram-token"
OTHER_TOKEN = "1002:other-token"
CHANNEL = -1001000000001
KINDS = ["photo", "video", "document", "audio", "animation"]
SOME_FILE = FileId(1001, "video", base64.urlsafe_b64encode(b"fifteen letters").decode())


def test_a_file_id_reads_as_it_was_written():
    assert file_ids.read(file_ids.write(SOME_FILE)) == SOME_FILE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no!", "Wrong character in the string"),
        ("", "can't unserialize it. Wrong last symbol"),
        ("A", "Wrong string length"),
        ("AgADBAAD", "can't unserialize it. Wrong last symbol"),
        (file_ids.write(SOME_FILE)[:-1] + "Q", "can't unserialize it. Wrong last symbol"),
    ],
)
def test_what_is_no_file_id_is_refused_with_its_reason(text, reason):
    with pytest.raises(FileIdError) as refused:
        file_ids.read(text)

    assert str(refused.value) == reason


@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_file_id_sends_only_what_it_is(client, kind, wanted):
    file_id = (await sent_file(client, kind, chat_id=CHANNEL))["file_id"]

    answer = await client.telegram(f"send{wanted.capitalize()}", chat_id=CHANNEL, **{wanted: file_id})

    if kind == wanted:
        assert answer.status == 200
    else:
        words = f"Bad Request: can't use file of type {kind.capitalize()} as {wanted.capitalize()}"
        assert answer.body["description"] == words


async def test_a_file_id_is_of_no_use_to_another_bot(client):
    await client.control("tokens", {"platform": "telegram", "token": OTHER_TOKEN, "limits": []})
    file = await sent_file(client, "photo", chat_id=CHANNEL)

    own = await sent_file(client, "photo", token=OTHER_TOKEN, chat_id=CHANNEL)
    sent = await client.telegram("sendPhoto", token=OTHER_TOKEN, chat_id=CHANNEL, photo=file["file_id"])
    got = await client.telegram("getFile", token=OTHER_TOKEN, file_id=file["file_id"])

    assert sent.body["description"] == "Bad Request: wrong file identifier/HTTP URL specified"
    assert got.body["description"] == "Bad Request: wrong file_id or the file is temporarily unavailable"
    assert own["file_unique_id"] == file["file_unique_id"]
    assert own["file_id"] != file["file_id"]


async def test_a_rotated_token_keeps_the_files_of_its_bot(client):
    file_id = (await sent_file(client, "document", chat_id=CHANNEL))["file_id"]
    await client.control("tokens", {"platform": "telegram", "token": "1001:rotated", "limits": []})

    answer = await client.telegram("sendDocument", token="1001:rotated", chat_id=CHANNEL, document=file_id)

    assert answer.status == 200


async def test_a_file_sent_again_keeps_what_it_was(client):
    song = await upload(
        client, "sendAudio", {"audio": ("song.mp3", b"la la")}, chat_id=CHANNEL, title="Song", performer="A", duration=9
    )
    file_id = song.body["result"]["audio"]["file_id"]

    again = await client.telegram("sendAudio", chat_id=CHANNEL, audio=file_id, title="Other", caption="again")

    assert again.body["result"]["audio"] == song.body["result"]["audio"]
    assert again.body["result"]["caption"] == "again"


@pytest.mark.parametrize("kind", KINDS)
async def test_the_bytes_come_back_to_the_bot_and_to_the_page(client, kind):
    content = png(shade=77)
    file = await sent_file(client, kind, content, chat_id=CHANNEL)
    path = (await client.telegram("getFile", file_id=file["file_id"])).body["result"]["file_path"]

    async with client.session.get(f"{client.base}/file/bot{TOKEN}/{path}") as downloaded:
        assert (downloaded.status, await downloaded.read()) == (200, content)
    async with client.session.get(f"{client.base}/_sim/files/{file['file_unique_id']}") as shown:
        assert (shown.status, hashlib.sha256(await shown.read()).digest()) == (200, hashlib.sha256(content).digest())
    assert [entry["method"] for entry in await client.log()][-1] == "download"


@pytest.mark.parametrize(
    ("name", "content_type", "disposition"),
    [
        ("page.html", "text/html", "attachment"),
        ("drawing.svg", "image/svg+xml", "attachment"),
        ("picture.png", "image/png", "inline"),
        ("unheard.of", "application/octet-stream", "attachment"),
    ],
)
async def test_nothing_a_bot_sends_runs_in_the_page(client, name, content_type, disposition):
    sent = await upload(client, "sendDocument", {"document": (name, b"<script>")}, chat_id=CHANNEL)
    unique_id = sent.body["result"]["document"]["file_unique_id"]

    async with client.session.get(f"{client.base}/_sim/files/{unique_id}") as shown:
        headers = shown.headers

    assert (shown.content_type, headers["Content-Disposition"]) == (content_type, disposition)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("sandbox")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/file/bot{TOKEN}/photos/nothing.png", 404),
        ("/file/bot1001:dead/photos/nothing.png", 401),
        ("/_sim/files/nothing", 404),
    ],
)
async def test_a_file_that_is_not_there_is_not_found(client, path, status):
    assert (await client.ask("GET", path)).status == status


async def test_a_download_path_is_of_no_use_to_another_bot(client):
    await client.control("tokens", {"platform": "telegram", "token": OTHER_TOKEN})
    file = await sent_file(client, "document", chat_id=CHANNEL)
    path = (await client.telegram("getFile", file_id=file["file_id"])).body["result"]["file_path"]

    assert (await client.ask("GET", f"/file/bot{OTHER_TOKEN}/{path}")).status == 404


@pytest.mark.parametrize(
    ("file_id", "words"), [("", "file_id not specified"), ("AgADBAAD", "invalid file_id"), ("no!", "invalid file_id")]
)
async def test_get_file_asks_for_a_file_id(client, file_id, words):
    answer = await client.telegram("getFile", file_id=file_id)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")


async def test_a_post_says_which_bytes_it_shows(client):
    content = png(20, 10)
    file = await sent_file(client, "photo", content, chat_id=CHANNEL)

    answer = await client.ask("GET", f"/_sim/chats/telegram/{CHANNEL}/messages")

    assert answer.body["messages"][0]["extra"]["media"] == [
        {
            "kind": "photo",
            "file_unique_id": file["file_unique_id"],
            "url": f"/_sim/files/{file['file_unique_id']}",
            "sha256": hashlib.sha256(content).hexdigest(),
            "size": len(content),
            "content_type": "image/png",
            "name": None,
            "width": 20,
            "height": 10,
        }
    ]


async def test_a_reset_forgets_the_files(client):
    file = await sent_file(client, "photo", chat_id=CHANNEL)

    await client.control("reset", {})

    assert (await client.ask("GET", f"/_sim/files/{file['file_unique_id']}")).status == 404


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        ("photo", b"", "file must be non-empty"),
        ("document", b"", "file must be non-empty"),
        ("photo", b"no picture", "IMAGE_PROCESS_FAILED"),
        ("photo", png(1, 21), "PHOTO_INVALID_DIMENSIONS"),
        ("photo", png(9_000, 1_001), "PHOTO_INVALID_DIMENSIONS"),
    ],
)
async def test_an_upload_telegram_would_not_take_is_refused(client, kind, content, words):
    answer = await upload(client, f"send{kind.capitalize()}", {kind: ("a.bin", content)}, chat_id=CHANNEL)

    assert (answer.status, answer.body["description"]) == (400, f"Bad Request: {words}")


async def test_a_photo_may_have_ten_megabytes_and_not_one_byte_more(client):
    most = 10 * 1024 * 1024
    fits, not_any_more = (png() + bytes(size - len(png())) for size in (most, most + 1))

    taken = await upload(client, "sendPhoto", {"photo": ("a.png", fits)}, chat_id=CHANNEL)
    refused = await upload(client, "sendPhoto", {"photo": ("a.png", not_any_more)}, chat_id=CHANNEL)

    assert taken.status == 200
    words = f"file of size {most + 1} bytes is too big for a photo; the maximum size is {most} bytes"
    assert refused.body["description"] == f"Bad Request: {words}"


async def test_a_part_can_be_named_or_have_the_name_of_its_parameter(client):
    named = await upload(
        client, "sendPhoto", {"elsewhere": ("a.png", png())}, chat_id=CHANNEL, photo="attach://elsewhere"
    )
    direct = await upload(client, "sendPhoto", {"photo": ("a.png", png())}, chat_id=CHANNEL)
    missing = await upload(client, "sendPhoto", {"elsewhere": ("a.png", png())}, chat_id=CHANNEL, photo="attach://no")

    assert named.body["result"]["photo"] == direct.body["result"]["photo"]
    assert missing.body["description"] == "Bad Request: there is no photo in the request"


JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffc0000b080010002001011100")
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\x1f\xc0\x03\0"
BMP = b"BM" + bytes(16) + (32).to_bytes(4, "little") + (16).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (png(32, 16), Picture(32, 16, "image/png")),
        (b"GIF89a\x20\0\x10\0", Picture(32, 16, "image/gif")),
        (JPEG, Picture(32, 16, "image/jpeg")),
        (WEBP, Picture(32, 16, "image/webp")),
        (BMP, Picture(32, 16, "image/bmp")),
        (b"GIF89a", None),
        (JPEG[:10], None),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_the_size_of_a_picture_is_in_its_first_bytes(content, seen):
    assert picture(content) == seen


@pytest.mark.parametrize("bound", [{"generation": 100}, {"contents": 2}], ids=str)
def test_the_spool_drops_its_older_half_when_it_is_full(bound):
    spool = Spool(**bound)
    contents = [bytes([number]) * 60 for number in range(6)]
    digests = [spool.put(content) for content in contents]

    kept = [spool.get(digest) for digest in digests]

    assert kept == [None, None, *contents[2:]]
    spool.clear()


def test_only_the_newest_files_are_known():
    files = TelegramFiles(kept=2)
    bot = new_bot("telegram", TOKEN)
    first, second, third = (
        TelegramFile(kind="document", sha256=files.store(name.encode()), size=1, content_type="text/plain", name=name)
        for name in ("a", "b", "c")
    )

    for file in (first, second, first, third):
        files.keep(bot, file)

    assert [files.by_unique_id(file.unique_id) for file in (first, second, third)] == [first, None, third]
    files.clear()


async def test_an_animation_is_also_shown_as_the_document_it_once_was(client):
    message = (await upload(client, "sendAnimation", {"animation": ("a.gif", png())}, chat_id=CHANNEL)).body["result"]

    assert message["animation"] | message["document"] == message["animation"]
    assert "duration" not in message["document"]


def test_equal_bytes_are_kept_once_while_they_are_young():
    spool = Spool(generation=100)

    digests = {spool.put(b"same" * 20) for _ in range(50)}

    assert [spool.get(digest) for digest in digests] == [b"same" * 20]
    spool.clear()
