"""Pull one source: RSS, API or database."""

from autopost_ingest.posts.compile import KnownProfiles
from autopost_ingest.posts.offload import Offload
from autopost_ingest.pull.endings import PullFinished
from autopost_ingest.pull.gateway import PullClaim, PullGateway
from autopost_ingest.pull.import_items import ImportLimits, ItemImporter, Waker
from autopost_ingest.pull.parsing.reader import DocumentReader
from autopost_ingest.pull.secrets import PullSecrets
from autopost_ingest.pull.source_config import ApiSource, DbSource, RssSource, read_cursor, read_source
from autopost_ingest.pull.sources.api import ApiPull
from autopost_ingest.pull.sources.database import look_up_server, pull_db
from autopost_ingest.pull.sources.fetch_document import Budget, Fetch
from autopost_ingest.pull.sources.rss import pull_rss


class SourcePuller:
    def __init__(
        self,
        gateway: PullGateway,
        secrets: PullSecrets,
        fetch: Fetch,
        reader: DocumentReader,
        wake: Waker,
        budget: Budget,
        limits: ImportLimits,
        offload: Offload | None = None,
    ) -> None:
        self._gateway = gateway
        self._secrets = secrets
        self._fetch = fetch
        self._reader = reader
        self._wake = wake
        self._budget = budget
        self._limits = limits
        self._offload = offload or Offload()
        self._profiles = KnownProfiles()

    async def pull(self, claim: PullClaim) -> PullFinished:
        source = read_source(claim.kind, claim.config_json)
        cursor = read_cursor(claim.cursor_json)
        importer = ItemImporter(claim, source, self._gateway, self._profiles, self._wake, self._limits, self._offload)
        fetch = self._fetch.on_behalf_of(claim.workspace_id)
        reader = self._reader.on_behalf_of(claim.workspace_id)
        match source:
            case RssSource():
                return await pull_rss(source, cursor, fetch, self._budget, reader, importer)
            case ApiSource():
                secret = await self._secrets.reveal(claim.workspace_id, source.auth.ref) if source.auth else None
                pull = ApiPull(source, secret, fetch, self._budget, reader, importer)
                return await pull.pull(cursor)
            case DbSource():
                dsn = await self._secrets.reveal(claim.workspace_id, source.dsn_ref)
                await look_up_server(dsn, fetch)
                return await pull_db(source, cursor, dsn, self._budget, reader, importer)
