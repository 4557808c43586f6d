"""The configuration of ingest, from ``AUTOPOST_*``."""

from datetime import timedelta
from typing import Annotated

from autopost_adapters.planning.settings import Upload, UploadKind, UploadPolicy
from autopost_runtime.config.env_values import Named
from autopost_runtime.config.load import ServiceConfig
from autopost_runtime.fetch.addresses import WEB_PORTS, Networks, Ports
from autopost_runtime.http.web import CONNECTIONS, CONNECTIONS_PER_ADDRESS
from msgspec import Meta

MiB = 1024 * 1024


class IngestConfig(ServiceConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_ingest"
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    head_timeout: Annotated[timedelta, Meta(ge=0.1, le=60)] = timedelta(seconds=10)
    connections: Annotated[int, Meta(ge=1)] = CONNECTIONS
    """Maximum of open connections; further ones get 503."""
    connections_per_address: Annotated[int, Meta(ge=1)] = CONNECTIONS_PER_ADDRESS
    """Behind a proxy all connections come from one address."""
    body_timeout: Annotated[timedelta, Meta(ge=0.1, le=60)] = timedelta(seconds=10)
    body_idle_timeout: Annotated[timedelta, Meta(ge=0.1, le=60)] = timedelta(seconds=5)
    body_memory: Annotated[int, Meta(ge=1024 * 1024)] = 32 * 1024 * 1024
    """Bytes of all request bodies in memory; further requests get 503. A workspace may use a quarter."""
    requests_per_workspace: Annotated[int, Meta(ge=1)] = 500
    """Concurrent requests in this process; further ones get 503."""
    audit_deduped: bool = False
    """Also store a row for each delivery that dedup suppressed; the event is always written."""
    upload_policy_image: Upload = "upload_required"
    """``url_allowed``: the platform fetches the URL, where it can (images on MAX); a channel may override it."""
    upload_policy_video: Upload = "upload_required"
    upload_policy_file: Upload = "upload_required"
    upload_policy_audio: Upload = "upload_required"
    upload_policy_other: Upload = "upload_required"
    fetch_allow: Networks = ()
    """Internal networks that a fetch may reach, on every port; all other addresses must be public."""
    fetch_deny: Networks = ()
    """Networks that no fetch may reach, whatever else is allowed, such as the pods and services of a cluster."""
    fetch_ports: Ports = WEB_PORTS
    fetch_timeout: Annotated[timedelta, Meta(ge=0.1, le=300), Named("DOWNLOAD_TIMEOUT_MS", "ms")] = timedelta(
        seconds=30
    )
    fetch_idle_timeout: Annotated[timedelta, Meta(ge=0.1, le=300)] = timedelta(seconds=10)
    fetch_image_limit: Annotated[int, Meta(ge=1), Named("MAX_MEDIA_BYTES_IMAGE")] = 10 * MiB
    fetch_video_limit: Annotated[int, Meta(ge=1), Named("MAX_MEDIA_BYTES_VIDEO")] = 50 * MiB
    fetch_file_limit: Annotated[int, Meta(ge=1)] = 50 * MiB
    """For files and audio."""
    fetch_concurrency: Annotated[int, Meta(ge=1, le=100)] = 8
    """Concurrent staged posts in this process."""
    fetch_per_workspace: Annotated[int, Meta(ge=1, le=100)] = 2
    """The same for one workspace, on all replicas together."""
    fetch_lease: Annotated[timedelta, Meta(ge=1, le=600)] = timedelta(seconds=60)
    """Renewed while a worker is active; a post of a dead worker waits this long."""
    pull_concurrency: Annotated[int, Meta(ge=0, le=100)] = 8
    """Concurrent pulls in this process; 0 disables pulling."""
    pull_per_workspace: Annotated[int, Meta(ge=1, le=100)] = 4
    """The same for one workspace, on all replicas together."""
    pull_timeout: Annotated[timedelta, Meta(ge=1, le=600)] = timedelta(seconds=90)
    """Time limit for one pull; items imported by then stay."""
    pull_size_limit: Annotated[int, Meta(ge=1024)] = 10 * MiB
    pull_read_cpu: Annotated[timedelta, Meta(ge=0.1, le=30)] = timedelta(seconds=1)
    """CPU time to parse one document in a separate process; longer ones are refused."""
    pull_chunk: Annotated[int, Meta(ge=1, le=1000), Named("PULL_CHUNK_SIZE")] = 100
    """Posts per transaction."""

    @property
    def upload_policy(self) -> UploadPolicy:
        """Only the kinds that differ from ``upload_required``."""
        given: dict[UploadKind, Upload] = {
            "image": self.upload_policy_image,
            "video": self.upload_policy_video,
            "file": self.upload_policy_file,
            "audio": self.upload_policy_audio,
            "other": self.upload_policy_other,
        }
        return {kind: upload for kind, upload in given.items() if upload != "upload_required"}
