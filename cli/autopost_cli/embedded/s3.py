"""An embedded S3 server: rclone over a plain folder, one subfolder per bucket, addressed by path."""

import os
from pathlib import Path

from autopost_cli.embedded.places import program
from autopost_cli.embedded.ports import HOST
from autopost_cli.embedded.probe import get
from autopost_cli.embedded.processes import Process
from autopost_cli.embedded.program import Server


class S3Server(Server):
    """The keys guard nothing but a folder of development data on 127.0.0.1.

    ``bucket`` is there from the start; make others by S3, for it does not see new folders.
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
        """It refuses an unsigned request the way S3 does."""
        answer = await get(self.url)
        return answer is not None and "<Error><Code>" in answer[1]
