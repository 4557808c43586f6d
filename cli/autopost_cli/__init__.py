"""The `autopost` command: run the system, operate it, inspect it."""
