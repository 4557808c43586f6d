"""Example requests; tests send each of them to the real service."""

from typing import Any

PICTURE = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
SECOND = "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"

POSTS: dict[str, dict[str, Any]] = {
    "text": {"text": "We are open again."},
    "markup": {
        "text": "<b>Sale</b>: everything <i>must</i> go. <a href='https://shop.example/'>See the shop</a>",
        "parse_mode": "HTML",
        "disable_preview": True,
    },
    "everything around a text": {
        "text": "**Release 1.4** is out",
        "parse_mode": "Markdown",
        "links": ["https://example.org/releases/1.4"],
        "buttons": [[{"text": "Download", "url": "https://example.org/download"}]],
        "tags": ["release", "news"],
        "silent": True,
        "source_ref": "release-1.4",
    },
    "some channels only": {"text": "Only for those", "routing": {"channel_tags": ["even"]}},
    "later": {"text": "Happy new year!", "scheduled_for": "2027-01-01T00:00:00Z"},
    "stored media": {
        "text": "Two pictures",
        "media": [
            {"type": "image", "blob_ref": PICTURE, "caption": "The first"},
            {"type": "image", "blob_ref": SECOND},
        ],
    },
    "media by URL": {
        "text": "A picture that is fetched",
        "media": [{"type": "image", "url": "https://images.example/picture.jpg"}],
    },
    "for a template": {"text": "What it says", "tags": ["news"], "meta": {"title": "What it is called"}},
}

UPDATES: dict[str, dict[str, Any]] = {
    "a message to the bot": {
        "update_type": "message_created",
        "timestamp": 1789000000000,
        "message": {
            "sender": {"user_id": 1, "first_name": "Anna", "is_bot": False},
            "recipient": {"chat_id": 2, "chat_type": "dialog"},
            "timestamp": 1789000000000,
            "body": {"mid": "mid.1", "seq": 1, "text": "Where is my order?"},
        },
    },
}
