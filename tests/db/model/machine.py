"""Runs a history against the database and the model side by side, and stops where they part."""

import asyncio
import json
from collections import Counter
from typing import Any

import asyncpg
from db.model.done import Done
from db.model.history import AGES, CONNECTIONS, History, Step
from db.model.queue_model import (
    FOREVER,
    GIVEN_UP,
    LIVE,
    ROW_TIMES,
    SECOND,
    Channel,
    Event,
    Row,
    Terms,
    View,
    Violation,
    agrees,
    check_move,
    demand,
    fold,
)
from db.model.rules import check_step
from db.model.steps import SETUP, STEP, WATCH

BLOCKED = "SELECT cardinality(pg_blocking_pids($1)) > 0"
UNITS = {"ms": 1000, "s": SECOND, "min": 60 * SECOND, "h": 3600 * SECOND, "d": 86400 * SECOND}
ENDINGS: list[dict[str, Any]] = [
    *[{"result": "sent", "provider_message_id": "17"}] * 6,
    {"result": "released"},
    {"result": "failed", "category": "TRANSIENT", "scope": "delivery"},
    {"result": "failed", "category": "TRANSIENT", "scope": "delivery", "retry_after_ms": 1500},
    {"result": "failed", "category": "TRANSIENT", "scope": "delivery", "ambiguous": True},
    {"result": "failed", "category": "TRANSIENT", "scope": "channel", "retry_after_ms": 3000},
    {"result": "failed", "category": "TRANSIENT", "scope": "platform", "retry_after_ms": 2000},
    {"result": "failed", "category": "TRANSIENT", "scope": "platform"},
    {"result": "failed", "category": "PERMANENT", "scope": "delivery"},
    {"result": "failed", "category": "PERMANENT", "scope": "channel"},
    {"result": "failed", "category": "PERMANENT", "scope": "platform"},
]


def microseconds(text: str) -> int:
    number, unit = text.split()
    return int(number) * UNITS[unit]


class Lane:
    """Connections that run one history after the other: some to act, one to look on and to let time pass."""

    def __init__(self, actors: "list[asyncpg.Connection[asyncpg.Record]]", observer: Any) -> None:
        self.actors = actors
        self.observer = observer

    @classmethod
    async def open(cls, url: str) -> "Lane":
        observer, *actors = [await asyncpg.connect(url) for _ in range(CONNECTIONS + 1)]
        # So that no trigger sees time pass. Not for each call: changing it throws all plans of the session away.
        await observer.execute("SET session_replication_role = replica")
        return cls(actors, observer)

    async def close(self) -> None:
        for connection in [self.observer, *self.actors]:
            connection.terminate()


class Machine:
    def __init__(self, lane: Lane, history: History) -> None:
        self.lane = lane
        self.history = history
        self.committed = View()
        self.open: dict[int, View] = {}
        self.last_seq: dict[int, int] = {}
        self.shift = 0
        self.claims: list[tuple[str, str]] = []
        self.tokens: set[str] = set()
        self.steps = 0  # of which something came: not those that found nothing to work on
        self.waits = 0

    async def run(self, *, drain: bool) -> None:
        await self.set_up()
        try:
            for step in self.history.steps:
                await self.step(step)
            await self.end_all("COMMIT")
            if drain:
                await self.drain()
        finally:
            for connection in self.open:
                await self.lane.actors[connection].execute("ROLLBACK")

    async def set_up(self) -> None:
        groups, channels = self.history.groups, self.history.channels
        made = json.loads(await self.lane.actors[0].fetchval(SETUP, json.dumps(groups), json.dumps(channels)))
        self.workspace, self.profile, self.channels = made["workspace"], made["profile"], made["channels"]
        steps = {group["name"]: _step_of(group["rate"]) for group in groups}
        self.terms = {
            channel: Terms(
                given["group"],
                _step_of(given["rate"]),
                steps[given["group"]],
                given["places"],
                given["on_ambiguous"],
                given["ttl"] * UNITS["h"],
                given["catch_up"]["policy"] != "all",
            )
            for channel, given in zip(self.channels, channels, strict=True)
        }
        self.committed.channels = {channel: Channel(channel, True, None, 0, None) for channel in self.channels}
        self.committed.gates = {group["name"]: None for group in groups}

    async def step(self, step: Step) -> None:
        if step.kind == "crash":
            self.steps += bool(self.claims)
            self.claims = self.claims[1 + step.pick % 3 :]
            return
        if step.kind == "age":
            self.steps += 1
            await self.end_all(step.ends)
            await self.act(step.connection, "age", {"by": AGES[step.pick % len(AGES)]})
            return
        if step.begins and step.connection not in self.open:
            await self.lane.actors[step.connection].execute("BEGIN")
            self.open[step.connection] = View(self.committed)
            self.last_seq[step.connection] = 0
        view = self.open.get(step.connection) or View(self.committed)
        args = self.arguments(step, view)
        if args is not None:
            self.steps += 1
            await self.act(step.connection, step.kind, args, step.chance)
        if step.ends and step.connection in self.open:
            await self.end(step.connection, step.ends)

    def arguments(self, step: Step, view: View) -> dict[str, Any] | None:
        channel = self.channels[step.pick % len(self.channels)]
        match step.kind:
            case "enqueue":
                return self.post(step)
            case "claim":
                return {"limit": 1 + step.pick % 8}
            case "commit":
                all_arrive = step.chance % 4 == 0  # the short way, in any order
                chosen = [self.choose(step, view, nth) for nth in range(1 + step.pick % (8 if all_arrive else 4))]
                endings = [
                    ENDINGS[0 if all_arrive else (step.chance + 5 * nth) % len(ENDINGS)] for nth in range(len(chosen))
                ]
                outcomes = [
                    {"delivery_id": claim[0], "claim_token": claim[1], **ending}
                    for claim, ending in zip(chosen, endings, strict=True)
                    if claim
                ]
                return {"outcomes": outcomes} if outcomes else None
            case "recover":
                ahead = "301 s" if step.pick % 3 else "0 s"
                return {"ahead": ahead, "ahead_us": microseconds(ahead)}
            case "renew" | "progress":
                claim = self.choose(step, view, 0)
                if not claim:
                    return None
                row = view.row(claim[0])
                part = row.parts if row else 0
                return {"ids": [claim[0]], "tokens": [claim[1]], "token": claim[1], "part": part}
            case "pause":
                length = AGES[step.other % len(AGES)]
                return {"channel": channel, "for": length, "for_us": microseconds(length)}
            case "resume" | "disable" | "enable":
                return {"channel": channel}
            case "requeue" | "raw_requeue":
                return self.some(step, [row for row in view.all_rows() if row.status in GIVEN_UP])
            case "resolve":
                held = [row for row in view.all_rows() if row.hold]
                decision = "sent" if step.chance % 2 else "resend"
                found = {"found": "18"} if step.chance % 3 else {}
                return {**args, "decision": decision, **found} if (args := self.some(step, held, 1)) else None
            case _:
                return {"force": step.pick % 2 == 0}

    def some(self, step: Step, rows: list[Row], count: int = 3) -> dict[str, Any] | None:
        if not rows:
            return None
        return {"ids": [rows[(step.pick + nth) % len(rows)].delivery for nth in range(min(count, len(rows)))]}

    def choose(self, step: Step, view: View, nth: int) -> tuple[str, str] | None:
        """A claim that is open in this view; now and then any that there ever was."""
        live = [c for c in self.claims if (row := view.row(c[0])) and row.status == "sending" and row.token == c[1]]
        pool = self.claims if not live or (step.other + nth) % 7 == 0 else live
        return pool[(step.other + nth) % len(pool)] if pool else None

    def post(self, step: Step) -> dict[str, Any]:
        text = f"text {step.pick % 5}"
        mask = 1 + step.other % (2 ** len(self.channels) - 1)
        channels = [channel for place, channel in enumerate(self.channels) if mask >> place & 1]
        rendering = {"profile_hash": self.profile, "plan_hash": "plan", "rendered_text": text, "plan": {}}
        post = {
            "content_hash": text,
            "hash_version": 1,
            "payload": {"type": "text"},
            "tags": [],
            "routing": {"channels": channels},
            "max_attempts": 1 + step.chance % 3,
            "renderings": [{**rendering, "calls": (1, 1, 1, 2, 3)[step.pick % 5]}],
        }
        return {"post": post, "channels": channels, **({"later": "60 s"} if step.chance % 9 == 0 else {})}

    async def act(self, place: int, kind: str, args: dict[str, Any], chance: int = 0) -> Any:
        connection, view = self.lane.actors[place], self.open.get(place)
        seq = self.last_seq[place] if view else 0
        if kind == "age":
            connection = self.lane.observer
            self.shift += microseconds(args["by"])
        call = asyncio.ensure_future(connection.fetchval(STEP, self.workspace, kind, json.dumps(args), seq))
        seen = [] if not self.open else await self.wait_for(call, place, chance)
        try:
            told = json.loads(await call)
        except asyncpg.PostgresError as error:
            raise Violation("no call fails", repr(error)) from error
        self.settle(place, kind, args, told, [*seen, view or View(self.committed)])
        if seen or not view:
            await self.watch()
        return told[0]

    async def wait_for(self, call: "asyncio.Future[Any]", place: int, chance: int) -> list[View]:
        """A step that has to wait is let through: the others end. What it saw may be what was before, too."""
        others = [other for other in self.open if other != place]
        while others and not call.done():
            await asyncio.wait({call}, timeout=0.005)
            if call.done() or not await self.lane.observer.fetchval(BLOCKED, self.lane.actors[place].get_server_pid()):
                continue
            self.waits += 1
            own = self.open.get(place, View())
            before = View(None, {**self.committed.rows, **own.rows}, {**self.committed.channels, **own.channels})
            for other in others:
                await self.end(
                    other, "ROLLBACK" if chance % 3 == 0 else "COMMIT", watch=False
                )  # the call goes on at once
            return [before]
        return []

    def settle(self, place: int, kind: str, args: dict[str, Any], told: list[Any], seen: list[View]) -> None:
        answer, began, ended, rows, events, channels, gates = told
        view = seen[-1]
        if kind == "progress":
            recorded, given = answer
            answer = (recorded, given and (self.time(given[0]), given[1], self.time(given[2])))
        after = [self.row(row) for row in rows or []]
        done = Done(
            kind,
            args,
            answer,
            began + self.shift,
            ended + self.shift,
            seen,
            {row.delivery: (was, row) for row in after if (was := view.row(row.delivery)) != row},
            {c[0]: (old, new) for c in channels or [] if (old := view.channel(c[0])) != (new := self.channel(c))},
            {g[0]: (had, has) for g in gates or [] if (had := view.gate(g[0])) != (has := self.time(g[1]))},
            self.terms,
            any(other.claimed for at, other in self.open.items() if at != place),
            any(at != place for at in self.open),
        )
        for was, row in done.changes.values():
            # resolve_ambiguous passes through sending inside its transaction, without a call.
            passes = was and kind == "resolve" and was.hold and row.status == "sent"
            check_move(was._replace(status="sending") if was and passes else was, row)
        check_step(done)
        if kind == "claim" and answer:
            self.note_claims(view, answer)
        view.rows.update({row.delivery: row for _, row in done.changes.values()})
        view.channels.update({channel: is_ for channel, (_, is_) in done.channels.items()})
        view.gates.update({group: has for group, (_, has) in done.gates.items()})
        self.fold_events(view, events or [], set(done.changes), place)
        if place not in self.open:
            view.land()

    def note_claims(self, view: View, claims: list[Any]) -> None:
        view.claimed = True
        token = claims[0][1]
        demand(token not in self.tokens, "fences", "a token was handed out twice", token)
        self.tokens.add(token)
        self.claims += [(claim[0], claim[1]) for claim in claims]

    def fold_events(self, view: View, events: list[Any], touched: set[str], place: int) -> None:
        for told in events:
            seq, delivery, action, attempt, provider_message_id, next_retry_at, ts = told
            next_retry_at, ts = self.time(next_retry_at), ts + self.shift
            event = Event(seq, delivery, action, attempt, provider_message_id, next_retry_at, ts)
            touched.add(event.delivery)
            if (told_so := fold(was := view.folded(event.delivery), event)) != was:
                view.folds[event.delivery] = told_so
            self.last_seq[place] = event.seq
        for delivery in touched:
            row, state = view.row(delivery), view.folded(delivery)
            never_was = row is None and not state.status  # a claim of a delivery that was rolled back, told as stale
            demand(never_was or (row is not None and agrees(state, row)), "fold(events) = row", state, row)

    async def end(self, place: int, how: str, *, watch: bool = True) -> None:
        await self.lane.actors[place].execute(how)
        view = self.open.pop(place)
        if how == "COMMIT":
            view.land()
            if watch:
                await self.watch()

    async def end_all(self, how: str) -> None:
        for place in list(self.open):
            await self.end(place, how or "COMMIT")

    async def watch(self) -> None:
        """What is committed is what the model says, and nothing it says is wrong."""
        seen, complaints = json.loads(await self.lane.observer.fetchval(WATCH, self.workspace))
        rows = self.committed.rows
        wanted = "\n".join(
            " ".join([row.delivery, row.status, str(row.attempt)] + ([row.token] if row.token else []))
            for _, row in sorted(rows.items())
        )
        demand((seen or "") == wanted, "what is committed is what was done", f"\n{seen}\n!=\n{wanted}")
        demand(not complaints, "consistent", complaints)
        flying = Counter(row.channel for row in rows.values() if row.status == "sending")
        for channel, count in flying.items():
            demand(count <= self.terms[channel].places, "max_parallel", channel, count)
        live = Counter((row.message, row.channel) for row in rows.values() if row.status in LIVE)
        for twins, count in live.items():
            demand(count == 1 or twins in self.committed.forced, "dedup window and in-flight guard", twins, count)

    async def drain(self) -> None:
        """Whatever was accepted comes to an end once nothing stands in its way."""
        for channel in self.channels:
            await self.act(0, "enable", {"channel": channel})
        for row in [row for row in self.committed.rows.values() if row.hold and row.status == "retry"]:
            await self.act(0, "resolve", {"ids": [row.delivery], "decision": "resend"})
        for _ in range(60):
            if not any(row.status in LIVE for row in self.committed.rows.values()):
                return
            await self.act(0, "age", {"by": "61 min"})
            await self.act(0, "recover", {"ahead": "0 s", "ahead_us": 0})
            held = [row for row in self.committed.rows.values() if row.hold and row.status == "retry"]
            for row in held:
                await self.act(0, "resolve", {"ids": [row.delivery], "decision": "resend"})
            claims = await self.act(0, "claim", {"limit": 100}) or []
            outcomes = [{"delivery_id": c[0], "claim_token": c[1], **ENDINGS[0]} for c in claims]
            if outcomes:
                await self.act(0, "commit", {"outcomes": outcomes})
        left = [row for row in self.committed.rows.values() if row.status in LIVE]
        raise Violation("no lost delivery", f"never sent: {left}")

    def time(self, told: int | None) -> int | None:
        return told if told is None or told == FOREVER else told + self.shift

    def row(self, told: list[Any]) -> Row:
        told[ROW_TIMES] = [self.time(moment) for moment in told[ROW_TIMES]]
        return Row(*told)

    def channel(self, told: list[Any]) -> Channel:
        return Channel(told[0], told[1], self.time(told[2]), told[3], self.time(told[4]))


def _step_of(rate: float | None) -> int:
    return round(SECOND / rate) if rate else 0
