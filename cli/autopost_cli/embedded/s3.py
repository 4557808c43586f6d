"""An embedded S3 server: rclone on a folder, with a subfolder per bucket and path-style addresses."""

import os
from pathlib import Path

from autopost_cli.embedded.places import program
from autopost_cli.embedded.ports import HOST
from autopost_cli.embedded.probe import get
from autopost_cli.embedded.processes import Process
from autopost_cli.embedded.program import Server


class S3Server(Server):
    """The keys protect only development data on 127.0.0.1.

    ``bucket`` exists from the start. Create others with S3 requests: the server does not notice new folders.
    """

    access_key = "autopost"
    secret_key = "autopost-secret"  # noqa: S105 -- see above

    def __init__(
        self, data: Path, *, port: int | None = None, bucket: str = "autopost", log: Path | None = None
    ) -> None:
        super().__init__("s3", data, port, log)
        self.bucket = bucket

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def _spawn(self) -> Process:
        (self.data / self.bucket).mkdir(parents=True, exist_ok=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith("RCLONE_")}
        return Process.start(self.name, self._command(), log=self.log, env=env)

    def _command(self) -> list[str | Path]:
        return [
            *(program("rclone"), "serve", "s3", self.data),
            *("--addr", f"{HOST}:{self.port}"),
            *("--auth-key", f"{self.access_key},{self.secret_key}"),
            *("--config", ""),
        ]

    async def answers(self) -> bool:
        """True when it refuses an unsigned request like S3."""
        answer = await get(self.url)
        return answer is not None and "<Error><Code>" in answer[1]
