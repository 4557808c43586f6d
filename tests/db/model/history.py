"""Random histories: what will be done, by whom, inside which transaction; decided before anything is run.

A step names what it works on by numbers that are taken modulo what is there when its turn comes. So any step can be
left out and the rest still is a history, which is how a failure is made small.
"""

import random
from typing import Any, NamedTuple

CONNECTIONS = 3
KINDS = {
    "enqueue": 20,
    "claim": 24,
    "commit": 26,
    "recover": 5,
    "age": 12,
    "progress": 4,
    "renew": 2,
    "crash": 2,
    "pause": 3,
    "resume": 3,
    "disable": 1,
    "enable": 3,
    "raw_requeue": 3,
    "requeue": 2,
    "resolve": 3,
    "release": 1,
    "raw_release": 1,
}
RATES = [None, None, 30, 20, 1, 0.5]
AGES = ["10 ms", "40 ms", "100 ms", "500 ms", "1 s", "1 s", "2 s", "2 s", "5 s", "30 s", "70 s"]
AGES += ["330 s", "11 min", "61 min", "25 h", "8 d"]
CATCH_UPS = [{"policy": "all"}] * 4 + [
    {"policy": "newest", "keep": 1},
    {"policy": "drop_older", "older_than": "1 hour"},
]


class Step(NamedTuple):
    connection: int
    begins: bool
    kind: str
    pick: int
    other: int
    chance: int
    ends: str
    """'' | 'COMMIT' | 'ROLLBACK', if a transaction is open then."""


class History(NamedTuple):
    seed: int
    groups: list[dict[str, Any]]
    channels: list[dict[str, Any]]
    steps: list[Step]

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", *map(repr, self.groups), *map(repr, self.channels), *map(repr, self.steps)]
        return "\n  ".join(lines)


def generate(seed: int) -> History:
    chance = random.Random(seed)
    groups = [{"name": name, "rate": chance.choice(RATES)} for name in "ab"[: chance.randint(1, 2)]]
    channels = [
        {
            "group": chance.choice(groups)["name"],
            "rate": chance.choice(RATES),
            "places": chance.randint(1, 3),
            "on_ambiguous": chance.choice(["resend", "resend", "hold"]),
            "ttl": chance.choice([168, 1]),
            "catch_up": chance.choice(CATCH_UPS),
        }
        for _ in range(chance.randint(2, 4))
    ]
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=chance.randint(40, 65))
    return History(seed, groups, channels, [_step(kind, chance) for kind in kinds])


def _step(kind: str, chance: random.Random) -> Step:
    ends = "COMMIT" if chance.random() < 0.3 else "ROLLBACK" if chance.random() < 0.12 else ""
    numbers = (chance.getrandbits(16), chance.getrandbits(16), chance.getrandbits(16))
    return Step(chance.randrange(CONNECTIONS), chance.random() < 0.45, kind, *numbers, ends)
