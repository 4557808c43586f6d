"""The adapters there are. A new platform is a package beside these, a line here and one in ``compilers``."""

from collections.abc import Mapping
from datetime import timedelta

from autopost_adapters.base import Adapter, Http
from autopost_adapters.max.send import MaxAdapter
from autopost_adapters.telegram.send import TelegramAdapter


def adapters(http: Http, *, telegram_url: str, max_url: str, timeout: timedelta) -> Mapping[str, Adapter]:
    made: list[Adapter] = [TelegramAdapter(http, telegram_url, timeout), MaxAdapter(http, max_url, timeout)]
    return {adapter.platform: adapter for adapter in made}
