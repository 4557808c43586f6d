"""Each id has its own type, so that a channel id cannot be passed for a delivery id."""

import base64
from hashlib import sha256
from typing import NewType
from uuid import UUID

WorkspaceId = NewType("WorkspaceId", UUID)
EndpointId = NewType("EndpointId", UUID)
ChannelId = NewType("ChannelId", UUID)
MessageId = NewType("MessageId", UUID)
RenderingId = NewType("RenderingId", UUID)
DeliveryId = NewType("DeliveryId", UUID)
EventId = NewType("EventId", UUID)
RunId = NewType("RunId", UUID)
ClaimToken = NewType("ClaimToken", UUID)
PublicationId = NewType("PublicationId", UUID)

TOKEN_LENGTH = 26


def chat_token(workspace: WorkspaceId, chat_id: str) -> str:
    """The name of a chat for events, subjects, logs and spans, because a chat id is that of a person. The SQL function
    has the same name and returns the same."""
    digest = sha256(f"{workspace}{chat_id}".encode()).digest()
    return base64.b32encode(digest).decode().lower()[:TOKEN_LENGTH]
