"""Pull a feed: asked whether it changed, read as a whole, its oldest items first."""

from typing import Any

from autopost_ingest.pull.bring import Bringer
from autopost_ingest.pull.documents import Budget, Document, Fetch, get
from autopost_ingest.pull.endings import Ended, PullRejected
from autopost_ingest.pull.items import oldest_first
from autopost_ingest.pull.reader import Reader
from autopost_ingest.pull.reading import Read, ReadFeed, Refused
from autopost_ingest.pull.sources import RssSource

ACCEPT = "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"


async def pull_rss(
    source: RssSource, cursor: dict[str, Any], fetch: Fetch, budget: Budget, reader: Reader, bringer: Bringer
) -> Ended:
    document = await get(fetch, source.url, {"Accept": ACCEPT, **validators(source.url, cursor)}, budget)
    if document is None:
        return Ended(outcome="unchanged")
    read = await read_by(reader, ReadFeed(body=document.body, content_type=document.content_type, url=document.url))
    fresh = await bringer.fresh(oldest_first(read.items))
    if not read.complete:
        await bringer.take(fresh, {}, last=False)
        raise PullRejected("truncated", "the feed breaks off; what came before was taken in")
    await bringer.take(fresh, validated(source.url, document), last=True)
    return Ended()


def validators(url: str, cursor: dict[str, Any]) -> dict[str, str]:
    """Only those that this very address gave."""
    if cursor.get("of") != url:
        return {}
    given = {"If-None-Match": cursor.get("etag"), "If-Modified-Since": cursor.get("last_modified")}
    return {name: value for name, value in given.items() if isinstance(value, str)}


def validated(url: str, document: Document) -> dict[str, Any]:
    return {"of": url, "etag": document.etag, "last_modified": document.last_modified}


async def read_by(reader: Reader, question: Any) -> Read:
    match await reader.read(question):
        case Refused(reason=reason):
            raise PullRejected("unreadable", reason)
        case read:
            return read
