"""How much is done of everything in a repetition: enough to be sure, or enough for every day.

Where two sides take turns (see ``turns``), half of it in each.
"""

from datetime import timedelta

from msgspec import Struct


class Counts(Struct, frozen=True, kw_only=True):
    repetitions: int = 3
    channels: tuple[int, int, int] = (40, 1_000, 10_000)
    """Few, many and very many; the first is what everything else is measured with."""
    seasoned_gb: int = 4
    """How much the server has written before anything is measured: more than any two sides do between checkpoints."""
    drained: int = 80_000
    enqueued: int = 80_000
    pgqueuer_jobs: int = 40_000
    procrastinate_jobs: int = 4_000
    anchor: timedelta = timedelta(seconds=10)
    backlog: int = 10_000
    long_backlog: int = 1_000_000
    history: int = 5_000_000
    blocked: int = 100_000
    sampled: int = 5_000
    """Deliveries over which a cost is averaged."""
    watched: timedelta = timedelta(seconds=30)
    """How long somebody looks at the long backlog."""
    relayed_within: timedelta = timedelta(minutes=10)
    """How long the stream may take to begin with all of it."""
    snapshot_drained: int = 200_000
    slot_repetitions: int = 3
    slot_period: timedelta = timedelta(seconds=60)
    slot_stop: timedelta = timedelta(seconds=10)
    """How long the dispatchers stand still afterwards."""
    called: int = 20_000
    """Deliveries with a real HTTP call, and calls without a queue."""
    replicas_drained: int = 60_000
    latencies: int = 500
    posted: int = 1_000
    """Posts into all channels through HTTP."""
    posted_to_one: int = 20_000
    """Two seconds: less would be the first moments after a checkpoint alone, when every page is logged whole."""
    idle_streams: int = 10_000
    busy_streams: int = 1_000
    """Streams of the chat that changes."""
    fanned_out: int = 40
    """Changes that all of them are told."""
    started: int = 10_000
    """Actions started through HTTP."""
    bot_chats: int = 20
    """Of each of 200 workspaces."""
    bot_updates: int = 5
    """Of each chat."""
    idle_chats: int = 1_000_000
    drained_by_turns: int = 80_000
    """With the trigger of publications and without: many, because little is lost by it."""
    published: int = 100
    """Publications of which each has a moment of its own."""
    due_at_once: int = 1_000
    """Publications that are due in one second."""
    tenant_repetitions: int = 3
    tenant_period: timedelta = timedelta(seconds=30)
    idle_period: timedelta = timedelta(seconds=20)
    parent_repetitions: int = 5


FULL = Counts()
QUICK = Counts(
    seasoned_gb=1,
    drained=10_000,
    enqueued=10_000,
    pgqueuer_jobs=10_000,
    procrastinate_jobs=1_000,
    anchor=timedelta(seconds=1),
    long_backlog=100_000,
    history=200_000,
    sampled=2_000,
    watched=timedelta(seconds=5),
    snapshot_drained=20_000,
    slot_repetitions=1,
    slot_period=timedelta(seconds=10),
    slot_stop=timedelta(seconds=3),
    called=4_000,
    replicas_drained=10_000,
    latencies=100,
    posted=300,
    posted_to_one=3_000,
    idle_streams=5_000,
    fanned_out=15,
    started=3_000,
    bot_updates=2,
    idle_chats=100_000,
    drained_by_turns=40_000,
    published=20,
    due_at_once=200,
    tenant_repetitions=1,
    tenant_period=timedelta(seconds=5),
    idle_period=timedelta(seconds=5),
    parent_repetitions=1,
)
