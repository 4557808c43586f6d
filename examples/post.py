"""Post a text, with nothing but Python: `python post.py 'We are open again' --tag news`.

Reads AUTOPOST_URL and AUTOPOST_SECRET. A lost answer is asked for again: the post has a name of its own (source_ref),
so it is taken in once, however often it is sent.
"""

import argparse
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

TRIES = 5
FOR_NOW = (408, 429, 500, 502, 503, 504)
"""What may be answered otherwise in a moment, also by a proxy in between."""


def send(post: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
    """The answer, also when it says no. Raises ``OSError`` or ``HTTPException`` when there is none."""
    for attempt in range(1, TRIES + 1):
        try:
            return ask(post, dry_run=dry_run)
        except urllib.error.HTTPError as refusal:
            if refusal.code not in FOR_NOW or attempt == TRIES:
                return read(refusal)
            after = refusal.headers.get("Retry-After", "")
            wait = float(after) if after.isdecimal() else 2.0**attempt
        except (OSError, http.client.HTTPException):
            if attempt == TRIES:
                raise
            wait = 2.0**attempt
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def ask(post: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
    request = urllib.request.Request(
        os.environ["AUTOPOST_URL"].rstrip("/") + "/v1/posts" + ("?dry_run=1" if dry_run else ""),
        data=json.dumps(post).encode(),
        headers={"Authorization": f"Bearer {os.environ['AUTOPOST_SECRET']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return read(answer)


def read(answer: Any) -> dict[str, Any]:
    body = answer.read()
    try:
        told = json.loads(body)
    except ValueError:
        told = None
    if isinstance(told, dict):
        return told
    return {"status": answer.status, "title": "This is no answer of autopost", "detail": body.decode(errors="replace")}


def main() -> int:
    parser = argparse.ArgumentParser(description="Post a text to every channel that wants it.")
    parser.add_argument("text")
    parser.add_argument("--parse-mode", choices=["HTML", "Markdown"])
    parser.add_argument("--link", action="append", default=[], dest="links")
    parser.add_argument("--tag", action="append", default=[], dest="tags")
    parser.add_argument("--source-ref", default=str(uuid.uuid4()), help="your own name for the post")
    parser.add_argument("--dry-run", action="store_true", help="show what would happen")
    given = vars(parser.parse_args())
    dry_run = given.pop("dry_run")

    answer = send({name: value for name, value in given.items() if value}, dry_run=dry_run)

    print(json.dumps(answer, indent=2, ensure_ascii=False))
    return 0 if answer.get("status") in ("accepted", "staged", "duplicate", "dry_run") else 1


if __name__ == "__main__":
    sys.exit(main())
