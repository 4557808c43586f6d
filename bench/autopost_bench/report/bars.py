"""What is asked of the figures: the least to call it done, and the star to reach for."""

from statistics import median
from typing import Literal

from msgspec import Struct

from autopost_bench.report.figures import Figures, spread

Tag = Literal["queue", "dispatch", "ingest", "tenants", "stream", "bot", "publications"]
TAGS: tuple[Tag, ...] = ("queue", "dispatch", "ingest", "tenants", "stream", "bot", "publications")


class Bar(Struct, frozen=True):
    """``figure`` divided by ``to``, or ``figure`` as it is. ``at_most``: less is better."""

    tag: Tag
    name: str
    figure: str
    to: str | None
    least: float
    star: float
    at_most: bool = False
    worst: bool = False
    """Judged by its worst repetition, not by the middle one."""
    needs_parent: bool = False
    """Another checkout to compare with; without one the bar is left out."""


class Judged(Struct, frozen=True, kw_only=True):
    tag: Tag
    name: str
    value: float
    spread: float
    least: float
    star: float
    met: bool


BARS = (
    Bar("queue", "no-op drain, 40 channels ÷ PgQueuer", "drain.few", "pgqueuer.drain", 1.4, 2.0),
    Bar("queue", "no-op drain, 40 channels ÷ procrastinate", "drain.few", "procrastinate.drain", 38, 80),
    Bar("queue", "drain over 1,000 channels ÷ over 40", "drain.many", "drain.few", 0.6, 0.8),
    Bar("queue", "drain over 10,000 channels ÷ over 40", "drain.very_many", "drain.few", 0.35, 0.6),
    Bar("queue", "enqueue to 1,000 channels ÷ PgQueuer enqueue", "enqueue.many", "pgqueuer.enqueue", 1.0, 2.0),
    Bar("queue", "enqueue to 40 channels ÷ PgQueuer enqueue", "enqueue.few", "pgqueuer.enqueue", 0.9, 1.2),
    Bar("queue", "cost with a long backlog ÷ with a short one", "cost.long_backlog", "cost.backlog", 1.3, 1.1, True),
    Bar("queue", "cost with a long history ÷ without", "cost.history", "cost.backlog", 1.3, 1.1, True),
    Bar("queue", "cost beside a blocked channel ÷ without", "cost.blocked", "cost.backlog", 1.3, 1.1, True),
    Bar(
        "queue",
        "cost of a burst without statistics ÷ of a backlog",
        "cost.no_statistics",
        "cost.backlog",
        1.5,
        1.1,
        True,
    ),
    Bar(
        "queue",
        "cost of a burst with empty ones ÷ of a backlog",
        "cost.empty_statistics",
        "cost.backlog",
        1.5,
        1.1,
        True,
    ),
    Bar("queue", "status page with a long backlog, seconds", "status.long_backlog", None, 1.0, 0.5, True, True),
    Bar("queue", "audit stream behind a long backlog, seconds", "relay.long_backlog", None, 5.0, 1.0, True, True),
    Bar("queue", "drain with an old snapshot held ÷ without", "snapshot.held", "snapshot.free", 0.5, 0.8),
    Bar("queue", "slot use under backlog ÷ the rate", "slots.use", None, 0.99, 0.999),
    Bar("queue", "slots too close in the ledger", "slots.ledger_violations", None, 0, 0, True, True),
    Bar("queue", "windows over the limit at the receiver", "slots.receiver_violations", None, 0, 0, True, True),
    Bar("dispatch", "deliveries with an HTTP call ÷ the client alone", "dispatch.http", "client.aiohttp", 0.75, 0.9),
    Bar("dispatch", "two replicas ÷ one, no-op", "replicas.two", "replicas.one", 0.95, 1.2),
    Bar("dispatch", "webhook to call, p50 ÷ bare chain", "latency.p50", "bare_chain.p50", 3.6, 1.5, True),
    Bar("dispatch", "webhook to call, p99 ÷ bare chain", "latency.p99", "bare_chain.p99", 3.8, 2, True),
    Bar("ingest", "enqueued through HTTP, 40 channels ÷ direct", "ingest.http", "ingest.direct", 0.5, 0.8),
    Bar("ingest", "posts to one channel ÷ bare commits", "ingest.one_channel", "commits.32_clients", 0.3, 0.6),
    Bar("tenants", "200 tenants at 27/s: calls ÷ what their rates allow", "tenants.200.use", None, 0.99, 0.998),
    Bar("tenants", "2,000 tenants at 2.7/s: calls ÷ what their rates allow", "tenants.2000.use", None, 0.99, 0.998),
    Bar("tenants", "200 tenants: two dispatchers ÷ one", "tenants.two.delivered", "tenants.200.delivered", 0.97, 1.0),
    Bar(
        "tenants", "processor time per call, 2,000 tenants ÷ 20", "tenants.2000.cost", "tenants.20.cost", 1.2, 1.1, True
    ),
    Bar("tenants", "1,000 tenants at 27/s ÷ one without limits", "tenants.all.delivered", "tenants.drain", 0.4, 0.55),
    Bar("tenants", "1,000 tenants at 27/s: most served ÷ least", "tenants.all.most_by_least", None, 1.3, 1.1, True),
    Bar(
        "tenants",
        "webhook to call beside 200 busy tenants ÷ alone",
        "tenants.beside.p50",
        "tenants.alone.p50",
        3,
        1.5,
        True,
    ),
    Bar(
        "tenants", "200 tenants beside four bad neighbours: calls ÷ rates", "tenants.neighbours.use", None, 0.99, 0.998
    ),
    Bar("tenants", "10,000 idle tenants: part of a core", "tenants.idle.cores", None, 0.01, 0.005, True),
    Bar("tenants", "10,000 idle tenants: megabytes", "tenants.idle.megabytes", None, 20, 10, True),
    Bar(
        "tenants",
        "no-op drain of one tenant ÷ the other checkout",
        "tenants.own.noop",
        "tenants.parent.noop",
        0.97,
        1.1,
        needs_parent=True,
    ),
    Bar(
        "tenants",
        "HTTP drain of one tenant ÷ the other checkout",
        "tenants.own.http",
        "tenants.parent.http",
        0.97,
        1.1,
        needs_parent=True,
    ),
    Bar(
        "tenants",
        "webhook to call, p50 ÷ the other checkout",
        "tenants.own.call",
        "tenants.parent.call",
        1.05,
        0.9,
        at_most=True,
        needs_parent=True,
    ),
    Bar("tenants", "slots too close in the ledger", "tenants.ledger_violations", None, 0, 0, True, True),
    Bar("tenants", "windows over the limit at the receiver", "tenants.receiver_violations", None, 0, 0, True, True),
    Bar("stream", "idle streams that one process holds", "stream.idle", None, 5_000, 10_000),
    Bar("stream", "memory of an idle stream, bytes", "stream.idle_bytes", None, 30_000, 18_000, True, True),
    Bar(
        "stream", "one change to 1,000 streams, p99 ÷ bare hub", "stream.fan_out.p99", "bare.fan_out.p99", 2, 1.2, True
    ),
    Bar("stream", "start to another replica, p50 ÷ bare chain", "stream.across.p50", "bare.across.p50", 2.5, 1.5, True),
    Bar("stream", "start to another replica, p99 ÷ bare chain", "stream.across.p99", "bare.across.p99", 3, 2, True),
    Bar("stream", "starts through HTTP ÷ bare commits", "stream.starts", "stream.commits.32_clients", 0.2, 0.4),
    Bar("bot", "500 written conversations, seconds", "bot.conversations", None, 2, 0.5, True, True),
    Bar("bot", "update to call, p50 ÷ bare bot chain", "bot.p50", "bare_bot.p50", 2.5, 1.5, True),
    Bar("bot", "update to call, p99 ÷ bare bot chain", "bot.p99", "bare_bot.p99", 3, 2, True),
    Bar("bot", "turns in 200 workspaces ÷ bare commits", "bot.turns", "bot.commits.32_clients", 0.25, 0.5),
    Bar("bot", "cost of a turn beside a million idle chats ÷ without", "bot.turns", "bot.turns_late", 1.3, 1.1, True),
    Bar("bot", "turns of two replicas ÷ one", "bot.turns_of_two", "bot.turns", 0.95, 1.2),
    Bar("bot", "one decision with 200 rules, microseconds", "bot.decide", None, 200, 50, True, True),
    Bar("publications", "time to call, p50, milliseconds", "publications.late.p50", None, 250, 60, True),
    Bar("publications", "time to call, p99, milliseconds", "publications.late.p99", None, 1_000, 250, True),
    Bar(
        "publications",
        "time to call without NATS, p99, milliseconds",
        "publications.late.without_nats",
        None,
        3_000,
        2_300,
        True,
    ),
    Bar("publications", "calls before their time", "publications.early", None, 0, 0, True, True),
    Bar("publications", "1,000 due in one second: calls ÷ the rate", "publications.use", None, 0.99, 0.999),
    Bar("publications", "slots too close in the ledger", "publications.ledger_violations", None, 0, 0, True, True),
    Bar(
        "publications",
        "windows over the limit at the receiver",
        "publications.receiver_violations",
        None,
        0,
        0,
        True,
        True,
    ),
    Bar(
        "publications",
        "drain with the trigger of publications ÷ without",
        "publications.drain.with",
        "publications.drain.without",
        0.98,
        0.995,
    ),
)


def judge(bar: Bar, figures: Figures) -> Judged:
    values = figures.values(bar.figure) if bar.to is None else figures.ratios(bar.figure, bar.to)
    value = max(values) if bar.worst else median(values)
    return Judged(
        tag=bar.tag,
        name=bar.name,
        value=value,
        spread=spread(values),
        least=bar.least,
        star=bar.star,
        met=value <= bar.least if bar.at_most else value >= bar.least,
    )
