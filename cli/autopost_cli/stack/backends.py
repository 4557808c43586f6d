"""The servers that services use: embedded ones, or external ones by URL."""

from collections.abc import Collection, Mapping
from pathlib import Path

from autopost_cli.embedded.nats import NatsServer
from autopost_cli.embedded.postgres import PostgresServer
from autopost_cli.embedded.s3 import S3Server
from autopost_cli.stack.services import SimulatorProgram
from autopost_cli.stack.settings import EMBEDDED, Ports, UpSettings

DATABASE = "autopost"


class Backends:
    """A server is ``None`` when it is external or not wanted; its URL is ``None`` when there is no such server."""

    def __init__(
        self,
        settings: UpSettings,
        ports: Ports,
        data: Path,
        *,
        wanted: Collection[str],
        postgres_settings: Mapping[str, str],
    ) -> None:
        def log(name: str) -> Path:
            return data / "logs" / f"{name}.log"

        self._settings = settings
        self.postgres: PostgresServer | None = None
        self.nats: NatsServer | None = None
        self.s3: S3Server | None = None
        self.simulator: SimulatorProgram | None = None
        if "postgres" in wanted and not settings.database_url:
            self.postgres = PostgresServer(
                data / "postgres", port=ports.take("postgres"), settings=postgres_settings, log=log("postgres")
            )
        if "nats" in wanted and settings.nats_url == EMBEDDED:
            self.nats = NatsServer(data / "nats", port=ports.take("nats"), log=log("nats"))
        if "s3" in wanted and not settings.s3_endpoint:
            self.s3 = S3Server(data / "s3", port=ports.take("s3"), bucket=settings.s3_bucket, log=log("s3"))
        if "simulator" in wanted:
            self.simulator = SimulatorProgram(log("simulator"), ports.take("simulator"), data / "simulator.jsonl")

    @property
    def database_url(self) -> str | None:
        return self.postgres.url(DATABASE) if self.postgres else self._settings.database_url

    @property
    def nats_url(self) -> str | None:
        if self.nats:
            return self.nats.url
        return None if self._settings.nats_url == EMBEDDED else self._settings.nats_url

    @property
    def s3_url(self) -> str | None:
        return self.s3.url if self.s3 else self._settings.s3_endpoint

    @property
    def simulator_url(self) -> str | None:
        return self.simulator.url if self.simulator else None

    def environment(self) -> dict[str, str | None]:
        """The environment of every service; ``None`` unsets a variable."""
        simulated = self.simulator_url
        return {
            "AUTOPOST_DATABASE_URL": self.database_url,
            "AUTOPOST_NATS_URL": self.nats_url or "off",
            "AUTOPOST_S3_ENDPOINT": self.s3_url,
            "AUTOPOST_S3_BUCKET": self._settings.s3_bucket,
            **self._s3_keys(),
            "AUTOPOST_TELEGRAM_API_URL": self._settings.telegram_api_url or simulated,
            "AUTOPOST_MAX_API_URL": self._settings.max_api_url or (simulated and f"{simulated}/max"),
        }

    def _s3_keys(self) -> dict[str, str | None]:
        access, secret = self._settings.s3_access_key, self._settings.s3_secret_key
        if self.s3:
            return {"AUTOPOST_S3_ACCESS_KEY": S3Server.access_key, "AUTOPOST_S3_SECRET_KEY": S3Server.secret_key}
        return {
            "AUTOPOST_S3_ACCESS_KEY": access.reveal() if access else None,
            "AUTOPOST_S3_SECRET_KEY": secret.reveal() if secret else None,
        }
