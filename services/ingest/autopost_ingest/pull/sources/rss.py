"""Pull a feed with a conditional request; the oldest items are imported first."""

from typing import Any

from autopost_ingest.pull.endings import PullFinished, PullRejected
from autopost_ingest.pull.import_items import ItemImporter
from autopost_ingest.pull.items import oldest_first
from autopost_ingest.pull.parsing.reader import DocumentReader
from autopost_ingest.pull.parsing.reading import ReadFeed
from autopost_ingest.pull.source_config import RssSource
from autopost_ingest.pull.sources.fetch_document import Budget, Document, Fetch, get

ACCEPT = "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"


async def pull_rss(
    source: RssSource,
    cursor: dict[str, Any],
    fetch: Fetch,
    budget: Budget,
    reader: DocumentReader,
    importer: ItemImporter,
) -> PullFinished:
    document = await get(fetch, source.url, {"Accept": ACCEPT, **validators(source.url, cursor)}, budget)
    if document is None:
        return PullFinished(outcome="unchanged")
    read = await reader.read(ReadFeed(body=document.body, content_type=document.content_type, url=document.url))
    fresh = await importer.fresh(oldest_first(read.items))
    if not read.complete:
        await importer.take(fresh, {}, last=False)
        raise PullRejected("truncated", "the feed is truncated; complete items were imported")
    await importer.take(fresh, validated(source.url, document), last=True)
    return PullFinished()


def validators(url: str, cursor: dict[str, Any]) -> dict[str, str]:
    """Validators are sent only to the URL that returned them."""
    if cursor.get("of") != url:
        return {}
    given = {"If-None-Match": cursor.get("etag"), "If-Modified-Since": cursor.get("last_modified")}
    return {name: value for name, value in given.items() if isinstance(value, str)}


def validated(url: str, document: Document) -> dict[str, Any]:
    return {"of": url, "etag": document.etag, "last_modified": document.last_modified}
