"""Debian's nginx as a proxy with its defaults. A test without it fails: ``.ci/nginx`` installs it.

The defaults are HTTP/1.0 behind it and buffering: it keeps an answer until 4 KiB of it have come. Chunks of HTTP/1.1 it
would pass on at once, whatever the service says.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.eventually import eventually

CONFIG = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/client;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream services {{
        server {first} max_fails=1 fail_timeout=60s;
        server {second} backup;
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://services;
        }}
    }}
}}
"""


@asynccontextmanager
async def nginx(folder: Path, first: str, second: str) -> AsyncIterator[str]:
    """Its URL. The second service is asked when the first does not answer."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.fail("nginx is missing; .ci/nginx installs it")
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(
        CONFIG.format(folder=folder, port=port, first=urlsplit(first).netloc, second=urlsplit(second).netloc)
    )
    process = await asyncio.create_subprocess_exec(
        *(program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config))
    )
    try:
        await eventually(lambda: process.returncode is not None or accepts(port))
        assert process.returncode is None, (folder / "error.log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
