"""Each id has its own type, so that a channel id cannot be passed for a delivery id."""

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
