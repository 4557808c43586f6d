"""Two ids are two types, so that a delivery is never looked up by a channel."""

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
