"""Development credentials: public, and valid for the simulator only."""

from typing import NamedTuple

WORKSPACE = "0de00000-0000-4000-8000-000000000001"
"""The demo workspace of `db/seed.sql`."""

PUSH_SECRET = "demo-push-secret-for-development"  # noqa: S105  documented in db/seed.sql

PUBLICATION_SECRET = "demo-publications-secret-for-development"  # noqa: S105  documented in db/seed.sql

STATUS_TOKEN = "operator-status-token-for-development"  # noqa: S105  documented in db/seed.sql
"""Opens the status page, for all workspaces."""

TOKENS = {
    "AUTOPOST_DEMO_TELEGRAM_TOKEN": "1000001:demo-telegram-token-for-development-only",
    "AUTOPOST_DEMO_MAX_TOKEN": "demo-max-token-for-development-only",
    "AUTOPOST_SHOP_TELEGRAM_TOKEN": "1000002:shop-telegram-token-for-development-only",
    "AUTOPOST_SHOP_MAX_TOKEN": "shop-max-token-for-development-only",
}
"""The environment variables that the credentials of the seed refer to."""


class DevelopmentBot(NamedTuple):
    """A bot in MAX of a workspace of the seed."""

    name: str
    variable: str
    """The environment variable with its token."""
    webhook_secret: str


BOTS = (
    DevelopmentBot("Demo bot", "AUTOPOST_DEMO_MAX_TOKEN", "demo-bot-secret-for-development"),
    DevelopmentBot("Shop bot", "AUTOPOST_SHOP_MAX_TOKEN", "shop-bot-secret-for-development"),
)
"""Documented in db/seed.sql."""
