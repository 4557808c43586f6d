"""Watches the inbox of the shop bot in MAX; the engine that answers comes next."""
