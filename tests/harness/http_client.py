"""An HTTP client for servers of a test, which speak without TLS."""

import ssl
from typing import Any

import httpx

NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts no certificate: reading those of the system would take each client 25 ms."""


def http_client(**options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(verify=NOBODY, **options)
