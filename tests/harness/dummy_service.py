"""A service with nothing in it, for tests of the supervisor: ready, told to stop, crashed or refusing, as asked.

Run as a program. ``DUMMY`` holds words: refuse, crash, stubborn, parent, noisy.
"""

import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def end(*_: object) -> None:
    say("told to stop")
    sys.exit(0)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    words = os.environ.get("DUMMY", "").split()
    if "refuse" in words:
        sys.stderr.write("AUTOPOST_EXAMPLE is not set: expected a number\n")
        sys.exit(2)
    if "crash" in words:
        sys.exit(1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in words else end)
    if "parent" in words:
        say(f"child {subprocess.Popen(['sleep', '600']).pid}")
    if "noisy" in words:
        say("a lot\n" * 200_000)
    server = HTTPServer(("127.0.0.1", int(os.environ["AUTOPOST_HEALTH_PORT"])), Ready)
    say(f"started with {os.environ.get('EXAMPLE', 'nothing')}")
    server.serve_forever(poll_interval=0.01)


if __name__ == "__main__":
    main()
