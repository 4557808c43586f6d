"""`autopost demo`: one post into forty channels, then the four promises, each shown by what the system did."""

from autopost_cli.demo.command import demo

__all__ = ["demo"]
