"""What is answered about posts that were sent; every field has its description for ``/openapi.json``."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

State = Literal["staged", "scheduled", "queued", "sent", "failed", "cancelled", "suppressed"]
STATES = (
    "staged: its media is being fetched; scheduled: all that waits, waits for its time; queued: some of it waits or is "
    "being sent; sent: nothing waits and at least one channel has it; failed; cancelled; suppressed: its channels had "
    "the content already."
)

RunField = Annotated[UUID | None, Meta(description="The request; null when asked by message id.")]
PostField = Annotated[UUID | None, Meta(description="Of a post whose media was fetched by URL.")]
MessageField = Annotated[UUID | None, Meta(description="The content; null until its media is fetched.")]
TraceField = Annotated[str | None, Meta(description="The trace of the request.")]
RefField = Annotated[str | None, Meta(description="The source_ref of the request, secrets masked.")]
StateField = Annotated[State, Meta(description=STATES)]
Outcomes = Annotated[
    dict[str, int],
    Meta(description="Deliveries by status: queued, claimed, sending, sent, retry, failed_permanent, dead, cancelled."),
]
ChannelField = Annotated[UUID, Meta(description="The channel.")]
TitleField = Annotated[str | None, Meta(description="The title of the channel.")]
PlatformField = Annotated[str | None, Meta(description="Its platform: telegram, max.")]
DeliveryField = Annotated[UUID, Meta(description="The post in this channel.")]


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer has no other fields."""


class Reason(Answer, frozen=True, kw_only=True):
    code: Annotated[str | None, Meta(description="Why it was not sent, or not yet.")]
    message: Annotated[str | None, Meta(description="The same in words.")]


class ChannelOutcome(Answer, frozen=True, kw_only=True):
    delivery_id: DeliveryField
    channel_id: ChannelField
    title: TitleField
    platform: PlatformField
    status: Annotated[str, Meta(description="Its status, as in `outcomes`.")]
    scheduled_for: Annotated[datetime | None, Meta(description="The time that was asked for.")]
    attempts: Annotated[int, Meta(description="How often it was tried.")]
    next_try_at: Annotated[
        datetime | None, Meta(description="Not before this time; null when it ended, is being sent or is held.")
    ]
    sent_at: Annotated[datetime | None, Meta(description="When the platform took it.")]
    provider_message_id: Annotated[str | None, Meta(description="Its id on the platform.")]
    link: Annotated[str | None, Meta(description="Its address, on platforms that have one (t.me).")]
    reason: Annotated[Reason | None, Meta(description="The last error; null when there was none.")]


class Suppressed(Answer, frozen=True, kw_only=True):
    channel_id: ChannelField
    title: TitleField
    platform: PlatformField
    delivery_id: Annotated[UUID | None, Meta(description="The delivery by which the channel had the content.")]


class Counts(Answer, frozen=True, kw_only=True):
    routed: Annotated[int, Meta(description="Channels that take the post.")]
    enqueued: Annotated[int, Meta(description="Those that got a delivery.")]
    deduped: Annotated[int, Meta(description="Those that had the content already.")]
    validation_failed: Annotated[int, Meta(description="Those that cannot show it.")]


class PostState(Answer, frozen=True, kw_only=True):
    """What became of a post."""

    state: StateField
    status: Annotated[
        Literal["staged", "enqueued", "refused", "failed"],
        Meta(description="What became of the request: refused when no channel could show it, failed with its media."),
    ]
    post_id: PostField
    run_id: RunField
    trace_id: TraceField
    message_id: MessageField
    source_ref: RefField
    accepted_at: Annotated[datetime, Meta(description="When the request came.")]
    finished_at: Annotated[datetime | None, Meta(description="When its deliveries were made.")]
    attempt: Annotated[int, Meta(description="How often its media was tried to be fetched.")]
    next_attempt_at: Annotated[datetime | None, Meta(description="When its media is tried next.")]
    error: Annotated[dict[str, Any] | None, Meta(description="Why its media could not be fetched.")]
    outcomes: Outcomes
    deliveries: Annotated[tuple[ChannelOutcome, ...], Meta(description="Per channel; the first 1,000.")]
    more_deliveries: Annotated[int, Meta(description="How many are not shown.")]
    suppressed: Annotated[tuple[Suppressed, ...], Meta(description="Channels that had the content already.")]
    channels: Annotated[Counts | None, Meta(description="The counts of the request, once it has deliveries.")] = None
    warnings: Annotated[
        tuple[dict[str, Any], ...], Meta(description="Of a staged post: as an accepted post would have had them.")
    ] = ()


class ListedPost(Answer, frozen=True, kw_only=True):
    run_id: RunField
    post_id: PostField
    message_id: MessageField
    trace_id: TraceField
    source_ref: RefField
    accepted_at: Annotated[datetime, Meta(description="When the request came.")]
    state: StateField
    outcomes: Outcomes


class PostList(Answer, frozen=True, kw_only=True):
    posts: Annotated[tuple[ListedPost, ...], Meta(description="The newest first. A page may be short.")]
    next: Annotated[UUID | None, Meta(description="`after` of the next page; null at the end.")]


class ChannelChange(Answer, frozen=True, kw_only=True):
    delivery_id: DeliveryField
    channel_id: ChannelField
    title: TitleField
    platform: PlatformField
    verdict: Annotated[
        str,
        Meta(
            description="cancelled, rescheduled; perhaps_sent: cancelled, but an earlier call was never answered; "
            "too_late: it is being sent, a failed call is not repeated; already: it has ended; partly_sent: unchanged, "
            "some parts are in the channel (partial=1 cancels the rest); shared: unchanged, another request relies on "
            "it (force=1 cancels it)."
        ),
    ]
    status: Annotated[str | None, Meta(description="Its status afterwards.")]


class PostChange(Answer, frozen=True, kw_only=True):
    status: Annotated[
        str,
        Meta(
            description="cancelled or rescheduled when that is true of any delivery; else, with 409: too_late, "
            "partly_sent, shared, already."
        ),
    ]
    deliveries: Annotated[tuple[ChannelChange, ...], Meta(description="Per channel.")]
    trace_id: TraceField


class ChangeRefusal(Answer, frozen=True, kw_only=True):
    """problem+json: nothing was changed."""

    type: Annotated[Literal["about:blank"], Meta(description="As RFC 9457 asks for.")]
    title: Annotated[str, Meta(description="The status in words.")]
    status: Annotated[int, Meta(description="The status.")]
    detail: Annotated[str, Meta(description="What is wrong and what to do.")]
    code: Annotated[str, Meta(description="too_late, partly_sent, shared, already, perhaps_sent, same_content.")]
    deliveries: Annotated[tuple[ChannelChange, ...], Meta(description="Per channel.")] = ()
    trace_id: Annotated[str | None, Meta(description="The trace of the request.")] = None


POST_STRUCTS = (PostState, PostList, PostChange, ChangeRefusal)
