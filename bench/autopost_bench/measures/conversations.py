"""Written conversations with the shop bot, by the whole command with the start of its process."""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from autopost_bench.machine.server import BenchServer
from autopost_bench.report.figures import Figures

CONVERSATIONS = 500
RULES = [
    {
        "rule_id": "ask",
        "intent": "order",
        "pattern": {"keywords": ["order"]},
        "response_template": "Which number?",
        "next_state": "number",
    },
    {
        "rule_id": "take",
        "intent": "order",
        "state": "number",
        "pattern": {"mode": "any"},
        "capture": "number",
        "accept": {"kind": "order"},
        "response_template": "Thank you for {{ number }}.",
        "next_state": "default",
    },
]
TURNS = [{"say": "order"}, {"say": "12345", "state": "default"}, {"say": "order"}, {"say": "stop"}]


async def measure(server: BenchServer, figures: Figures) -> None:
    figures.record("bot.conversations", await asyncio.to_thread(_tested_seconds), "seconds")


def _tested_seconds() -> float:
    with tempfile.TemporaryDirectory() as folder:
        conversations, rules = Path(folder, "conversations.json"), Path(folder, "rules.json")
        conversations.write_bytes(msgspec.json.encode([{"name": str(n), "turns": TURNS} for n in range(CONVERSATIONS)]))
        rules.write_bytes(msgspec.json.encode({"rules": RULES, "settings": {"cancel_words": ["stop"]}}))
        command = (sys.executable, "-m", "autopost_cli", "bot", "test", str(conversations), "--rules", str(rules))
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun
