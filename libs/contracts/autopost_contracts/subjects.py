"""The streams, consumers and subjects of NATS, in one place.

Postgres is the source of truth. JetStream carries wakeups and copies of events, and no state that is not in the
database. Workspace ids are safe subject tokens; user text never becomes one.
"""

from datetime import timedelta
from typing import Literal

from msgspec import Struct

from autopost_contracts.events import Action
from autopost_contracts.ids import WorkspaceId

DEFAULT_NAMESPACE = "autopost"


class StreamSpec(Struct, frozen=True, kw_only=True):
    name: str
    subjects: tuple[str, ...]
    storage: Literal["memory", "file"]
    max_age: timedelta
    max_msgs_per_subject: int = -1
    duplicate_window: timedelta = timedelta(minutes=2)


class ConsumerSpec(Struct, frozen=True, kw_only=True):
    """A durable pull consumer; ``acks`` is false only where a lost message costs nothing."""

    stream: str
    durable: str
    filter_subject: str
    acks: bool
    ack_wait: timedelta = timedelta(seconds=30)
    max_ack_pending: int = 1000


class Topology(Struct, frozen=True):
    """All names under one namespace, so that tests and installations on one NATS server do not collide."""

    namespace: str = DEFAULT_NAMESPACE

    def stream(self, name: str) -> str:
        return name if self.namespace == DEFAULT_NAMESPACE else f"{self.namespace.upper().replace('.', '_')}_{name}"

    def subject(self, tail: str) -> str:
        return f"{self.namespace}.{tail}"

    @property
    def commands(self) -> str:
        return "delivery.commands" if self.namespace == DEFAULT_NAMESPACE else self.subject("delivery.commands")

    @property
    def dead_commands(self) -> str:
        return f"{self.commands}.dlq"

    def wakeup_dispatch(self, workspace: WorkspaceId) -> str:
        return self.subject(f"wakeup.dispatch.{workspace}")

    def wakeup_bot(self, workspace: WorkspaceId) -> str:
        return self.subject(f"wakeup.bot.{workspace}")

    def wakeup_publish(self, workspace: WorkspaceId) -> str:
        return self.subject(f"wakeup.publish.{workspace}")

    def chat(self, workspace: WorkspaceId, token: str) -> str:
        """``token``: ``chat_token`` of the chat, never its number."""
        return self.subject(f"chat.{workspace}.{token}")

    @property
    def chats(self) -> str:
        """Of no stream: a chat's number in the database says what was missed."""
        return self.subject("chat.*.*")

    def audit(self, workspace: WorkspaceId | None, action: Action | None) -> str:
        """``None`` is a wildcard, for subscribers."""
        return self.subject(f"audit.{workspace or '*'}.{action or '*'}")

    @property
    def audit_stream(self) -> StreamSpec:
        return StreamSpec(
            name=self.stream("AUDIT"),
            subjects=(self.subject("audit.>"),),
            storage="file",
            max_age=timedelta(days=30),
        )

    @property
    def streams(self) -> tuple[StreamSpec, ...]:
        return (
            StreamSpec(
                name=self.stream("WAKEUPS"),
                subjects=(self.subject("wakeup.>"),),
                storage="memory",
                max_age=timedelta(minutes=1),
                max_msgs_per_subject=1,  # all wakeups of one workspace collapse into one
                duplicate_window=timedelta(seconds=1),
            ),
            self.audit_stream,
            StreamSpec(
                name=self.stream("COMMANDS"),
                subjects=(self.commands, self.dead_commands),
                storage="file",
                max_age=timedelta(days=30),
            ),
        )

    @property
    def dispatcher_wakeups(self) -> ConsumerSpec:
        return ConsumerSpec(
            stream=self.stream("WAKEUPS"),
            durable="dispatcher",
            filter_subject=self.subject("wakeup.dispatch.*"),
            acks=False,
        )

    @property
    def bot_wakeups(self) -> ConsumerSpec:
        return ConsumerSpec(
            stream=self.stream("WAKEUPS"),
            durable="bot",
            filter_subject=self.subject("wakeup.bot.*"),
            acks=False,
        )

    @property
    def publish_wakeups(self) -> ConsumerSpec:
        return ConsumerSpec(
            stream=self.stream("WAKEUPS"),
            durable="ingest",
            filter_subject=self.subject("wakeup.publish.*"),
            acks=False,
        )

    @property
    def publish_commands(self) -> ConsumerSpec:
        return ConsumerSpec(
            stream=self.stream("COMMANDS"),
            durable="post-scheduler-worker",
            filter_subject=self.commands,
            acks=True,
        )

    @property
    def consumers(self) -> tuple[ConsumerSpec, ...]:
        return (self.dispatcher_wakeups, self.bot_wakeups, self.publish_wakeups, self.publish_commands)
