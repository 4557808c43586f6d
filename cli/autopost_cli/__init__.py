"""The `autopost` command: up, demo, migrate, seed, bench."""
