"""Pull one source, by its kind."""

from autopost_ingest.compile import Profiles
from autopost_ingest.pull.api import ApiPull
from autopost_ingest.pull.bring import Bringer, Limits, Wake
from autopost_ingest.pull.database import look_up_server, pull_db
from autopost_ingest.pull.documents import Budget, Fetch
from autopost_ingest.pull.endings import Ended
from autopost_ingest.pull.gateway import Claim, PullGateway
from autopost_ingest.pull.reader import Reader
from autopost_ingest.pull.rss import pull_rss
from autopost_ingest.pull.secrets import PullSecrets
from autopost_ingest.pull.sources import ApiSource, DbSource, RssSource, read_source


class PullOne:
    def __init__(
        self,
        gateway: PullGateway,
        secrets: PullSecrets,
        fetch: Fetch,
        reader: Reader,
        wake: Wake,
        budget: Budget,
        limits: Limits,
    ) -> None:
        self._gateway = gateway
        self._secrets = secrets
        self._fetch = fetch
        self._reader = reader
        self._wake = wake
        self._budget = budget
        self._limits = limits
        self._profiles = Profiles()

    async def pull(self, claim: Claim) -> Ended:
        source = read_source(claim.kind, claim.config_json)
        bringer = Bringer(claim, source, self._gateway, self._profiles, self._wake, self._limits)
        cursor, fetch = claim.cursor_json, self._fetch.on_behalf_of(claim.workspace_id)
        match source:
            case RssSource():
                return await pull_rss(source, cursor, fetch, self._budget, self._reader, bringer)
            case ApiSource():
                secret = await self._secrets.reveal(claim.workspace_id, source.auth.ref) if source.auth else None
                pull = ApiPull(source, secret, fetch, self._budget, self._reader, bringer)
                return await pull.pull(cursor)
            case DbSource():
                dsn = await self._secrets.reveal(claim.workspace_id, source.dsn_ref)
                await look_up_server(dsn, fetch)
                return await pull_db(source, cursor, dsn, self._budget, self._reader, bringer)
