"""Pull a JSON API page by page.

The position is stored with the last chunk of each page. After an interruption or the maximum number of pages, the next
pull resumes there. A pull from the first page stops at the first page without new items.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from autopost_runtime.config.load import Secret

from autopost_ingest.pull.endings import PullFailed, PullFinished, PullRejected
from autopost_ingest.pull.import_items import ItemImporter
from autopost_ingest.pull.items import Item, oldest_first
from autopost_ingest.pull.parsing.reader import DocumentReader, ParsedDocument
from autopost_ingest.pull.parsing.reading import ReadRecords
from autopost_ingest.pull.source_config import ApiSource, NextCursor, NextLink, PageNumber
from autopost_ingest.pull.sources.fetch_document import Budget, Document, Fetch, get
from autopost_ingest.pull.sources.rss import validated, validators

_PAGE_MISSING = frozenset({"http_400", "http_404", "http_410", "http_422"})


class ApiPull:
    def __init__(
        self,
        source: ApiSource,
        secret: Secret | None,
        fetch: Fetch,
        budget: Budget,
        reader: DocumentReader,
        importer: ItemImporter,
    ) -> None:
        self._source = source
        self._secret = secret
        self._fetch = fetch
        self._budget = budget
        self._reader = reader
        self._importer = importer

    async def pull(self, cursor: dict[str, Any]) -> PullFinished:
        resume = cursor.get("resume") if cursor.get("of") == self._source.url else None
        if not isinstance(resume, str):
            return await self._walk(None, cursor, stop_when_seen=self._source.stop_when_seen)
        try:
            return await self._walk(resume, {"page": cursor.get("page")}, stop_when_seen=False)
        except PullFailed as exc:
            if exc.code not in _PAGE_MISSING:
                raise
        return await self._walk(None, {}, stop_when_seen=False)

    async def _walk(self, place: str | None, cursor: dict[str, Any], *, stop_when_seen: bool) -> PullFinished:
        visited, before = {place}, cursor.get("page")
        for page in range(self._source.pages):
            headers = self._headers(cursor if page == 0 else {})
            document = await get(self._fetch, self._address(place), headers, self._budget)
            if document is None:
                return PullFinished(outcome="unchanged")
            read = await self._read(document)
            fresh = await self._importer.fresh(oldest_first(read.items, newest_come_first=self._source.stop_when_seen))
            following = self._following(read, place, document)
            page_hash = _digest(read.items)
            all_seen = stop_when_seen and not fresh
            if following in visited or all_seen or page_hash == before:  # the last: the API ignores the page parameter
                following = None
            await self._importer.take(
                fresh,
                self._cursor(document, following, page_hash),
                last=following is None,
                newest=place is None if self._source.stop_when_seen else following is None,
            )
            if following is None:
                return PullFinished()
            visited.add(following)
            place, before = following, page_hash
        return PullFinished(more=True)

    async def _read(self, document: Document) -> ParsedDocument:
        source = self._source
        paging = source.paging
        return await self._reader.read(
            ReadRecords(
                body=document.body,
                url=document.url,
                items=source.items,
                fields=source.fields,
                text_format=source.text_format,
                next_path=paging.path if isinstance(paging, NextLink | NextCursor) else None,
            ),
        )

    def _address(self, place: str | None) -> str:
        match self._source.paging:
            case NextLink() if place is not None:
                return place
            case NextCursor(param=param) if place is not None:
                return _with(self._source.url, param, place)
            case PageNumber(param=param, first=first):
                return _with(self._source.url, param, place or str(first))
            case _:
                return self._source.url

    def _following(self, read: ParsedDocument, place: str | None, document: Document) -> str | None:
        match self._source.paging:
            case NextLink() if read.next:
                return self._same_site(urljoin(document.url, read.next))
            case NextCursor():
                return read.next
            case PageNumber(first=first) if read.items:
                return str(int(place or first) + 1)
            case _:
                return None

    def _same_site(self, url: str) -> str:
        """The secret is never sent to another site, even if the response links to one."""
        if self._secret is not None and _origin(url) != _origin(self._source.url):
            raise PullRejected("foreign_page", "the next page is on another site; the secret is not sent there")
        return url

    def _headers(self, cursor: dict[str, Any]) -> dict[str, str]:
        auth = self._source.auth
        headers = {"Accept": "application/json"}
        if auth is not None and self._secret is not None:
            headers["Authorization"] = f"{auth.scheme} {self._secret.reveal()}".strip()
        return headers | (validators(self._source.url, cursor) if self._source.paging is None else {})

    def _cursor(self, document: Document, following: str | None, page_hash: str) -> dict[str, Any]:
        if self._source.paging is None:
            return validated(self._source.url, document)
        return {"of": self._source.url, "resume": following, "page": page_hash if following else None}


def _digest(items: Sequence[Item]) -> str:
    return sha256("\n".join(item.ref for item in items).encode()).hexdigest()


def _with(url: str, name: str, value: str) -> str:
    parts = urlsplit(url)
    query = [(key, old) for key, old in parse_qsl(parts.query, keep_blank_values=True) if key != name]
    return urlunsplit(parts._replace(query=urlencode([*query, (name, value)])))


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", None, None
