"""What ingest reads from ``AUTOPOST_*``."""

from datetime import timedelta
from typing import Annotated

from autopost_runtime.addresses import WEB_PORTS, Networks, Ports
from autopost_runtime.config import ServiceConfig
from autopost_runtime.web import CONNECTIONS, CONNECTIONS_PER_ADDRESS
from msgspec import Meta

MiB = 1024 * 1024


class IngestConfig(ServiceConfig, frozen=True, kw_only=True):
    database_role: str | None = "autopost_ingest"
    http_host: str = "127.0.0.1"
    http_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    head_timeout: Annotated[timedelta, Meta(ge=0.1, le=60)] = timedelta(seconds=10)
    connections: Annotated[int, Meta(ge=1)] = CONNECTIONS
    """Open at a time; who comes on top is answered 503."""
    connections_per_address: Annotated[int, Meta(ge=1)] = CONNECTIONS_PER_ADDRESS
    """Behind a proxy all come from one address."""
    body_timeout: Annotated[timedelta, Meta(ge=0.1, le=60)] = timedelta(seconds=10)
    body_idle_timeout: Annotated[timedelta, Meta(ge=0.1, le=60)] = timedelta(seconds=5)
    body_memory: Annotated[int, Meta(ge=1024 * 1024)] = 32 * 1024 * 1024
    """Bytes of all bodies that are being read or worked on; who comes on top is told to try again. A workspace may fill
    a quarter of it."""
    requests_per_workspace: Annotated[int, Meta(ge=1)] = 500
    """Under way at a time, in this process; the same for who comes on top."""
    audit_deduped: bool = False
    """Also keep a row for each delivery that dedup suppressed; the event is always written."""
    fetch_allow: Networks = ()
    """Networks inside that a fetch may reach, at every port; all else must be public."""
    fetch_deny: Networks = ()
    """Networks that no fetch reaches whatever else is said: those of a cluster's pods and services."""
    fetch_ports: Ports = WEB_PORTS
    fetch_timeout: Annotated[timedelta, Meta(ge=0.1, le=300)] = timedelta(seconds=30)
    fetch_idle_timeout: Annotated[timedelta, Meta(ge=0.1, le=300)] = timedelta(seconds=10)
    fetch_image_limit: Annotated[int, Meta(ge=1)] = 10 * MiB
    fetch_video_limit: Annotated[int, Meta(ge=1)] = 50 * MiB
    fetch_file_limit: Annotated[int, Meta(ge=1)] = 50 * MiB
    """Audio too."""
    fetch_concurrency: Annotated[int, Meta(ge=1, le=100)] = 8
    """Staged posts worked on at a time, by this process."""
    fetch_per_workspace: Annotated[int, Meta(ge=1, le=100)] = 2
    """The same for one workspace, on all replicas together."""
    fetch_lease: Annotated[timedelta, Meta(ge=1, le=600)] = timedelta(seconds=60)
    """Renewed while it is worked on; how long a post of a dead worker waits."""
    pull_concurrency: Annotated[int, Meta(ge=0, le=100)] = 8
    """Sources pulled at a time, by this process; 0 pulls none."""
    pull_per_workspace: Annotated[int, Meta(ge=1, le=100)] = 4
    """The same for one workspace, on all replicas together."""
    pull_timeout: Annotated[timedelta, Meta(ge=1, le=600)] = timedelta(seconds=90)
    """For one pull of one source; what it has taken in by then stays."""
    pull_size_limit: Annotated[int, Meta(ge=1024)] = 10 * MiB
    pull_chunk: Annotated[int, Meta(ge=1, le=1000)] = 100
    """Posts in one transaction."""
