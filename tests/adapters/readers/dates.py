"""The ``format`` of ``tg-time``: the letters of TDLib's ``get_date_flags``."""

import re


def is_date_format(written: str) -> bool:
    return re.fullmatch("[rR]|[tTdDwW]*", written) is not None
