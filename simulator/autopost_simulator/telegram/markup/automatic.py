"""Entities that the server finds by itself: mention, bot_command, hashtag, cashtag, url, email.

Bank cards are found too; they are not shown, but nothing else is found in them and bold is split around them.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from autopost_simulator.telegram.markup.automatic_urls import find_app_urls, find_urls
from autopost_simulator.telegram.markup.bank_cards import find_bank_cards
from autopost_simulator.telegram.markup.span import Span, in_order

HIDDEN = "bank_card_number"

_MENTION = re.compile(r"(?<!\w)@((?>[A-Za-z0-9_]+))(?!\w)")
_SHORT_NAMES = ("gif", "nft", "pic", "ufc", "vid")
_COMMAND = re.compile(r"(?<![\w/<>])/((?>[A-Za-z0-9_]+))(?:@((?>[A-Za-z0-9_]*)))?+(?![\w/<>])")
_TICKER = re.compile(r"\$(1INCH|(?>[A-Z]+))")
_CHANNEL = re.compile(r"@((?>[A-Za-z0-9_]{3,}))")
_LONGEST_TAG = 256
_LONGEST_NAME = 32


def find_entities(text: str) -> list[Span]:
    """In order and without overlaps; of two at one place the longer one."""
    found: list[Span] = []
    for sign, find in (("@", _mentions), ("/", _commands), ("#", _hashtags), ("$", _cashtags)):
        if sign in text:
            found += find(text)
    found += [Span(HIDDEN, *place) for place in find_bank_cards(text)]
    if "://" in text:
        found += [Span("url", *place) for place in find_app_urls(text)]
    if "." in text:
        found += [Span("email" if is_email else "url", begin, end) for begin, end, is_email in find_urls(text)]
    kept: list[Span] = []
    for span in in_order(found):
        if not kept or span.begin >= kept[-1].end:
            kept.append(span)
    return kept


def _mentions(text: str) -> Iterator[Span]:
    for found in _MENTION.finditer(text):
        length = len(found[1])
        if 4 <= length <= _LONGEST_NAME or found[1].lower() in _SHORT_NAMES:
            yield Span("mention", *found.span())


def _commands(text: str) -> Iterator[Span]:
    for found in _COMMAND.finditer(text):
        bot = found[2]
        if len(found[1]) <= 64 and (bot is None or 3 <= len(bot) <= _LONGEST_NAME):
            yield Span("bot_command", *found.span())


def _hashtags(text: str) -> Iterator[Span]:
    at = text.find("#")
    while at >= 0:
        end = _tag_end(text, at + 1)
        shown = min(end, at + 1 + _LONGEST_TAG)
        if shown == end and (channel := _CHANNEL.match(text, end)):
            end = shown = min(channel.end(), end + 1 + _LONGEST_NAME)
        begins = at == 0 or not _is_tag_letter(text[at - 1])
        if begins and text[end : end + 1] != "#" and any(_is_letter(one) for one in text[at + 1 : shown]):
            yield Span("hashtag", at, shown)
        at = text.find("#", max(end, at + 1))


def _cashtags(text: str) -> Iterator[Span]:
    for found in _TICKER.finditer(text):
        begin, end = found.span()
        if len(found[1]) > 8 or (begin and (_is_tag_letter(text[begin - 1]) or text[begin - 1] == "$")):
            continue
        channel = _CHANNEL.match(text, end)
        if channel and len(channel[1]) <= _LONGEST_NAME:
            end = channel.end()
        following = text[end : end + 1]
        if not following or not (_is_tag_letter(following) or following == "$"):
            yield Span("cashtag", begin, end)


def _tag_end(text: str, at: int) -> int:
    while at < len(text) and _is_tag_letter(text[at]):
        at += 1
    return at


@lru_cache(maxsize=4_096)
def _is_tag_letter(character: str) -> bool:
    sinhala = "\u0d80" <= character <= "\u0dff"
    return character in "_\u200c\xb7" or sinhala or _is_letter(character) or unicodedata.category(character) == "Nd"


def _is_letter(character: str) -> bool:
    return unicodedata.category(character).startswith("L")
