"""The calls that programs in other languages make to the Telegram simulator, and what must come of each."""

from pathlib import Path
from typing import Any

from harness.telegram_media import png

SUPERGROUP = -1002000000001
LETTER = "Dear reader\n"


def call_files(folder: Path) -> None:
    (folder / "a.png").write_bytes(png(shade=10))
    (folder / "b.png").write_bytes(png(shade=200))
    (folder / "a.mp4").write_bytes(b"moving pictures " * 50)
    (folder / "a.mp3").write_bytes(b"ID3" + b"sound " * 50)
    (folder / "письмо.txt").write_text(LETTER)


def call_chats() -> list[dict[str, Any]]:
    return [
        {"platform": "telegram", "id": -50, "type": "group", "state": "kicked"},
        {"platform": "telegram", "id": -51, "type": "group", "migrated_to": SUPERGROUP},
        {"platform": "telegram", "id": -1005, "type": "channel", "limits": [{"count": 0, "per": 17}]},
    ]


def message(text: str | None, *entities: str, kind: str | None = None, **more: Any) -> dict[str, Any]:
    return {"text": text, "entities": list(entities), "kind": kind, "buttons": [], **more}


def refused(status: int, words: str, **parameters: int) -> dict[str, Any]:
    return {"status": status, "message": words, **parameters}


OPEN = ["https://example.org/a"]
CALL_RESULTS = {
    "me": True,
    "chat": "News",
    "rights": "administrator",
    "text": message("hello 👍🏽 &  x", "bold", "code"),
    "longText": 4096,
    "quiet": message("https://example.org", "url"),
    "photo": message("seen", "italic", kind="photo"),
    "photoAgain": message(None, kind="photo"),
    "album": [message("first", "bold", kind="photo"), message(None, kind="photo"), message(None, kind="video")],
    "document": message("read", kind="document", buttons=OPEN),
    "video": message(None, kind="video"),
    "animation": message(None, kind="animation"),
    "audio": message(None, kind="audio"),
    "download": ["письмо.txt", LETTER],
    "editAndDelete": [message("new", "strikethrough"), True],
    "editCaption": message("new", kind="photo"),
    "deadToken": refused(401, "Unauthorized"),
    "nobody": refused(400, "Bad Request: chat not found"),
    "kicked": refused(403, "Forbidden: bot was kicked from the group chat"),
    "migrated": refused(
        400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=SUPERGROUP
    ),
    "tooFast": refused(429, "Too Many Requests: retry after 17", retry_after=17),
    "tooLong": refused(400, "Bad Request: message is too long"),
    "badMarkup": refused(400, "Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"b\""),
    "noPhoto": refused(
        400, "Bad Request: wrong remote file identifier specified: can't unserialize it. Wrong last symbol"
    ),
}
