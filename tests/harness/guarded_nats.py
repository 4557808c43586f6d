"""A NATS server with users, permissions and TLS, run from the example that operators are given."""

import os
import ssl
from pathlib import Path

import nats
import nats.errors
from autopost_cli.embedded.nats import NatsServer
from autopost_cli.embedded.places import program
from autopost_cli.embedded.ports import HOST
from autopost_cli.embedded.processes import Process
from nats.aio.client import Client

from harness.certificates import Authority

EXAMPLE = Path(__file__).parents[2] / "examples" / "nats-server.conf"
USERS = ("ingest", "dispatcher", "bot", "monitor", "operator")
INBOX = {"operator": "_INBOX_cli"}


class GuardedNats(NatsServer):
    """``mutual`` also asks clients for a certificate."""

    def __init__(self, folder: Path, *, mutual: bool = False, config: Path = EXAMPLE) -> None:
        super().__init__(folder / "nats")
        self.authority = Authority(folder)
        self.client_cert, self.client_key = self.authority.issue("client")
        self._cert, self._key = self.authority.issue("server")
        self._mutual = mutual
        self._config = config

    @property
    def url(self) -> str:
        return f"tls://{HOST}:{self.port}"

    def env(self, user: str) -> dict[str, str]:
        """What a service of this name is told."""
        certificate = {"AUTOPOST_NATS_TLS_CERT": str(self.client_cert), "AUTOPOST_NATS_TLS_KEY": str(self.client_key)}
        return {
            "AUTOPOST_NATS_URL": self.url,
            "AUTOPOST_NATS_USER": user,
            "AUTOPOST_NATS_PASSWORD": f"password-of-{user}",
            "AUTOPOST_NATS_TLS_CA": str(self.authority.bundle),
            **(certificate if self._mutual else {}),
        }

    async def connect(self, user: str, errors: list[str] | None = None) -> Client:
        """As somebody who has that user's password, and nothing of ours."""

        async def note(exc: Exception) -> None:
            if errors is not None:
                errors.append(str(exc).lower())

        context = ssl.create_default_context(cafile=str(self.authority.bundle))
        context.load_cert_chain(self.client_cert, self.client_key)
        return await nats.connect(
            self.url,
            user=user,
            password=f"password-of-{user}",
            tls=context,
            inbox_prefix=INBOX.get(user, f"_INBOX_{user}"),
            error_cb=note,
            allow_reconnect=False,
            connect_timeout=2,
        )

    async def _spawn(self) -> Process:
        self.data.mkdir(parents=True, exist_ok=True)
        passwords = {f"NATS_{user.upper()}_PASSWORD": f"password-of-{user}" for user in USERS}
        tls = ["--tls", "--tlscert", str(self._cert), "--tlskey", str(self._key)]
        asks = ["--tlsverify", "--tlscacert", str(self.authority.bundle)] if self._mutual else []
        where = ["-a", HOST, "-p", str(self.port), "-sd", str(self.data)]
        return Process.start(
            self.name,
            [program("nats-server"), "-c", str(self._config), *where, *tls, *asks],
            log=self.log,
            env={"PATH": os.defpath, **passwords},
        )

    async def answers(self) -> bool:
        try:
            client = await self.connect("monitor")
        except (OSError, nats.errors.Error):
            return False
        try:
            await client.jetstream(timeout=1).stream_info("AUDIT")
        except nats.errors.TimeoutError:
            return False
        except nats.errors.Error:
            pass  # there is none yet, and JetStream said so
        finally:
            await client.close()
        return True
