"""Feeds that take long to parse, by name and size."""

from collections.abc import Callable

_HEAD = (
    '<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><item><guid>1</guid>'
)
_TAIL = "</item></channel></rss>"
_AROUND = {
    "nothing": ("", ""),
    "prolog": ('<?xml version="1.0"?>', f"<rss>{_HEAD}{_TAIL}"),
    "channel": ('<rss version="2.0"><channel>', "</channel></rss>"),
    "item": (_HEAD, _TAIL),
    "tag": (f"{_HEAD}<x ", f"/>{_TAIL}"),
    "text": (f"{_HEAD}<description>", f"</description>{_TAIL}"),
    "html": (f"{_HEAD}<description><![CDATA[", f"]]></description>{_TAIL}"),
    "address": (f'{_HEAD}<description><![CDATA[<a href="http://', f'">x</a>]]></description>{_TAIL}'),
    "title": (f"{_HEAD}<title>", f"</title>{_TAIL}"),
    "link": (f"{_HEAD}<link>http://", f"</link>{_TAIL}"),
    "author": (f"{_HEAD}<author>", f"</author>{_TAIL}"),
    "date": (f"{_HEAD}<pubDate>", f"</pubDate>{_TAIL}"),
    "end": (f"{_HEAD}{_TAIL}", ""),
    "end and more": (f"{_HEAD}{_TAIL}", "x"),
    "cut off": (f"{_HEAD}<description>", ""),
    "base": (
        '<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://',
        '"><entry><id>1</id><link href="a"/><content type="html">&lt;img src=a&gt;</content></entry></feed>',
    ),
    "json": ('{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","content_html":"', '"}]}'),
    "items of JSON": ('{"version":"https://jsonfeed.org/version/1","items":[', '{"id":"1"}]}'),
}
_UNITS = {
    "nothing": ("<![CDATA[", "<b><i>", "<", "&", "<!--", "<?"),
    "prolog": ("<!-- -->", "\n", "<?x?>", "<!---->\n"),
    "channel": ("<div>", "<item/>", "<![CDATA[", "<pubDate>Mon, "),
    "item": (
        *("<category>c%d</category>", "<x xmlns:a%d='b'>", "<enclosure url='http://a.b/%d'/>", "<source url='a'>"),
        *("<![CDATA[", "<b><i>", "<dc:creator>%d</dc:creator>"),
    ),
    "tag": ("a%d='b' ", "xmlns:a%d='b' "),
    "text": (
        "<b><i>",
        "&lt;a ",
        "&lt;!--",
        "&lt;b&gt;&lt;i&gt;",
        "&amp;#9999999999;",
        "e\u0301\u0323",
        "&#x301;&#x323;",
    ),
    "html": (
        *("<b><i>", "<b>", "<a href='x'>", "<a href=x ", "<x ", "<x a", "<x a=", "<x a='", '<x a="', "<!--", "</x"),
        *("<!", "<?", "<![CDATA[", "<img src=%d>", "<ul><li>", "<pre>", "<script>", "<svg>", "&#", "&x", "<style></"),
    ),
    "address": ("\u0301\u0323", "../", "a/", "%"),
    "title": ("<b><i>", "&lt;x y", " "),
    "link": ("\u0301\u0323", "&#x301;&#x323;", "../"),
    "author": ("1-", "a@", "(", "<ul><li>"),
    "date": ("1", "1-", ":", " ", "Mon, "),
    "end": ("<!-- -->", "<!--", "<!---->\n", "\n", "</rss>", "-->"),
    "end and more": ("<!-- -->", "<!---->\n", "\n"),
    "cut off": ("<![CDATA[", "]]>", "<b><i>", "<x a='"),
    "base": ("\u0301\u0323", "&#x301;&#x323;", "a/"),
    "json": ("<b><i>", "<x ", "<!--", "&#"),
    "items of JSON": ('{"id":1},', '{"id":[[[[[]]]]]},', "[],"),
}


def repeated(unit: str, size: int) -> str:
    """``%d`` in it is another number each time."""
    if "%d" not in unit:
        return unit * (size // len(unit.encode()))
    return "".join(unit % number for number in range(size // (len(unit) + 4)))


def _maker(place: str, unit: str) -> Callable[[int], str]:
    before, after = _AROUND[place]
    return lambda size: before + repeated(unit, size) + after


FEEDS: dict[str, Callable[[int], str]] = {
    f"{place}: {unit!a}": _maker(place, unit) for place, units in _UNITS.items() for unit in units
}
