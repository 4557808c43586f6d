"""`autopost demo`: one post to forty channels, then the six guarantees, each checked on a running system."""

from autopost_cli.demo.command import demo

__all__ = ["demo"]
