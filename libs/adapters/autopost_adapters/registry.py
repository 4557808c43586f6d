"""The registered adapters. A new platform needs a package, a line here and a line in ``compilers``."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from autopost_adapters.base import Adapter, Http
from autopost_adapters.max.send import MaxAdapter
from autopost_adapters.telegram.send import TelegramAdapter

UPLOAD_TIMEOUT = timedelta(minutes=4)


def adapters(
    http: Http,
    *,
    telegram_url: str,
    max_url: str,
    timeout: timedelta,
    upload_timeout: timedelta = UPLOAD_TIMEOUT,
    others: Iterable[Adapter] = (),
) -> Mapping[str, Adapter]:
    """``upload_timeout`` is for calls with media; ``others`` are added to the built-in adapters."""
    made: list[Adapter] = [
        TelegramAdapter(http, telegram_url, timeout, upload_timeout),
        MaxAdapter(http, max_url, timeout, upload_timeout),
        *others,
    ]
    return {adapter.platform: adapter for adapter in made}
