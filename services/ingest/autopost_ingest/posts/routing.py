"""Find the channels that a post names: by id, by chat id or by title.

A name that means no channel, or several, is refused: the post would reach nobody, or the wrong ones. The error says
which name it is and what is nearest to it.
"""

from autopost_contracts.ids import WorkspaceId
from autopost_contracts.payload import PostRequest
from autopost_runtime.config.suggestions import suggest
from autopost_runtime.secrets.redaction import quoted
from msgspec.structs import replace

from autopost_ingest.errors import InvalidPost
from autopost_ingest.gateway import FoundChannels, Gateway, NamedChannel

MOST_NAMED = 5
"""Channels that an error lists."""


async def find_channels(
    gateway: Gateway, workspace: WorkspaceId, request: PostRequest, channel_tags: tuple[str, ...]
) -> PostRequest:
    """The post with the ids of the channels that it names. Raises ``InvalidPost``."""
    names = request.routing.channels
    if not names and not channel_tags:
        return request
    found = await gateway.find_channels(workspace, names, channel_tags)
    for place, (name, channels) in enumerate(zip(names, found.channels, strict=True)):
        _check_name(f"routing.channels[{place}]", name, channels, found)
    for tag in found.unknown_tags:
        place = channel_tags.index(tag)
        raise InvalidPost(f"routing.channel_tags[{place}]", f"no channel has the tag {_word(tag, found.tags)}")
    ids = tuple(dict.fromkeys(str(channel.channel_id) for [channel] in found.channels))
    return replace(request, routing=replace(request.routing, channels=ids))


def _check_name(field: str, name: str, channels: tuple[NamedChannel, ...], found: FoundChannels) -> None:
    if not channels:
        raise InvalidPost(field, f"unknown channel {_word(name, found.titles)}")
    if len(channels) > 1:
        listed = ", ".join(f"{channel.channel_id} ({channel.platform})" for channel in channels[:MOST_NAMED])
        raise InvalidPost(
            field, f"{quoted(name)!r} is the name of {len(channels)} channels; name one by its id: {listed}"
        )


def _word(name: str, known: tuple[str, ...]) -> str:
    """The word, and what is nearest to it."""
    return f"{quoted(name)!r}; {suggest(name, known, most=MOST_NAMED)}"
