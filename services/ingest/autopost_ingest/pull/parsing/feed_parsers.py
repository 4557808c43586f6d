"""The parsers of feedparser, without the parts that take more than linear time or that we do not need.

A document is parsed as XML; if it is not well-formed, it is parsed again by the loose parser.
"""

import io
import re
import xml.sax
from typing import Any
from xml.sax.handler import feature_external_ges, feature_namespaces

from feedparser.api import LooseFeedParser, StrictFeedParser
from feedparser.exceptions import UndeclaredNamespace
from msgspec import Struct

from autopost_ingest.pull.items import MOST_ENTRIES
from autopost_ingest.pull.parsing.xml_references import InvalidDocument

MOST_CATEGORIES = 50
MOST_NAMESPACES = 64
MOST_ATTRIBUTES = 100
"""Per element."""

_GAP = re.compile(r"\s*")
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*([\[>]|\Z)")


class Parsed(Struct, frozen=True):
    version: str
    """Empty for an unknown feed format."""
    entries: list[Any]


def parse(text: str) -> Parsed:
    """Raises ``InvalidDocument`` when the document exceeds a limit."""
    document = without_prolog(text)
    try:
        return _parsed_as_xml(document)
    except (xml.sax.SAXException, UndeclaredNamespace):
        loose = _Loose("", None, "utf-8", {})
        loose.feed(document)
        return Parsed(loose.version, loose.entries)


def without_prolog(text: str) -> str:
    """The document from its root element on, without instructions, comments and the document type."""
    place = 0
    while gap := _GAP.match(text, place):
        place = gap.end()
        if text.startswith("<?", place):
            place = _after(text, "?>", place)
        elif text.startswith("<!--", place):
            place = _after(text, "-->", place + 4)
        elif doctype := _DOCTYPE.match(text, place):
            place = _after(text, ">", _after(text, "]", place)) if doctype[1] == "[" else doctype.end()
        else:
            break
    return text[place:]


def _after(text: str, closing: str, start: int) -> int:
    found = text.find(closing, start)
    return len(text) if found < 0 else found + len(closing)


def _parsed_as_xml(document: str) -> Parsed:
    handler = _Strict("", None, "utf-8")
    parser = xml.sax.make_parser()  # noqa: S317  the same
    parser.setFeature(feature_namespaces, True)
    parser.setFeature(feature_external_ges, False)
    parser.setContentHandler(handler)
    parser.setErrorHandler(handler)
    source = xml.sax.InputSource()
    source.setEncoding("utf-8")
    source.setByteStream(io.BytesIO(document.encode()))
    parser.parse(source)
    return Parsed(handler.version, handler.entries)


class _BoundedHandler:
    """Overrides of feedparser's mixin, which keeps ``entries`` and ``namespaces_in_use``."""

    sanitize_html = False
    resolve_relative_uris = False
    entries: list[Any]
    namespaces_in_use: dict[str, str]

    def unknown_starttag(self, tag: str, attrs: list[tuple[str, str]]) -> None:
        if len(self.entries) > MOST_ENTRIES:
            raise InvalidDocument(f"the document has more than {MOST_ENTRIES} items")
        super().unknown_starttag(tag, attrs)  # type: ignore[misc]  # the mixin has no types

    def track_namespace(self, prefix: str | None, uri: str) -> None:
        if len(self.namespaces_in_use) < MOST_NAMESPACES:
            super().track_namespace(prefix, uri)  # type: ignore[misc]  # the same

    def _sync_author_detail(self, key: str = "author") -> None:
        """Authors are not used."""

    def _add_tag(self, term: str | None, scheme: str | None, label: str | None) -> None:
        if len(self._get_context().get("tags", ())) < MOST_CATEGORIES:  # type: ignore[attr-defined]  # the same
            super()._add_tag(term, scheme, label)  # type: ignore[misc]  # the same


class _Strict(_BoundedHandler, StrictFeedParser):  # type: ignore[misc]  # made without types
    def startElementNS(self, name: Any, qname: Any, attrs: Any) -> None:  # noqa: N802  the name is given by SAX
        """A limit, because the look-up of attributes takes quadratic time."""
        if len(attrs) > MOST_ATTRIBUTES:
            raise InvalidDocument(f"an element has more than {MOST_ATTRIBUTES} attributes")
        super().startElementNS(name, qname, attrs)


class _Loose(_BoundedHandler, LooseFeedParser):  # type: ignore[misc]  # made without types
    pass
