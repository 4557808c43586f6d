"""The adapters there are. A new platform is a package beside these, a line here and one in ``compilers``."""

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
    """``upload_timeout`` is for calls that carry media; ``others`` stand beside the shipped ones."""
    made: list[Adapter] = [
        TelegramAdapter(http, telegram_url, timeout, upload_timeout),
        MaxAdapter(http, max_url, timeout, upload_timeout),
        *others,
    ]
    return {adapter.platform: adapter for adapter in made}
