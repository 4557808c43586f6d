"""Group media into messages, in order, each item once, within ``AlbumLimits``. Independent of the platform."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from autopost_contracts.payload import MediaType

from autopost_adapters.planning.limits import AlbumLimits

Item = TypeVar("Item")


def arrange(
    items: Sequence[Item],
    album: AlbumLimits,
    *,
    type_of: Callable[[Item], MediaType],
    is_alone: Callable[[Item], bool],
    buttons: bool,
) -> list[list[Item]]:
    """``buttons``: the last message must have room for buttons."""
    messages: list[list[Item]] = []
    for item in items:
        if messages and _joins(messages[-1], item, album, type_of, is_alone):
            messages[-1].append(item)
        else:
            messages.append([item])
    if buttons and album.buttons_count and messages and 1 < len(messages[-1]) == album.size:
        messages.append([messages[-1].pop()])
    return messages


def _joins(
    message: Sequence[Item],
    item: Item,
    album: AlbumLimits,
    type_of: Callable[[Item], MediaType],
    is_alone: Callable[[Item], bool],
) -> bool:
    if len(message) >= album.size or is_alone(item) or is_alone(message[-1]):
        return False
    return any({type_of(message[0]), type_of(item)} <= group for group in album.together)
