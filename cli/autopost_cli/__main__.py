"""The ``autopost`` command. A subcommand is loaded when it is used: ``--help`` must not wait for all of them."""

import importlib
from typing import ClassVar

import click


class Commands(click.Group):
    """Where each subcommand lives, and what it says about itself in the list."""

    lazy: ClassVar[dict[str, tuple[str, str]]] = {
        "up": ("autopost_cli.up:up", "Start Postgres, NATS, S3, the simulator and the services."),
        "demo": ("autopost_cli.demo:demo", "Show the four promises on a running system, one by one."),
        "migrate": ("autopost_cli.migrate:migrate", "Bring the database to the schema of this version."),
        "seed": ("autopost_cli.seed:command", "Put two demo workspaces into the database."),
        "queue": ("autopost_cli.queue:queue", "See how the queue stands and what broke; bring back, skip, release."),
        "channel": ("autopost_cli.channel:channel", "Look at channels, pause them, switch them off and on."),
        "verify": ("autopost_cli.verify:verify", "Prove that every delivery is what its events say."),
        "why": ("autopost_cli.why:why", "Say what holds a post, a delivery or a channel, and what would release it."),
        "payload": ("autopost_cli.payload:payload", "Read what a platform really answered, or a sender really sent."),
        "events": ("autopost_cli.events:events", "Watch what happens, as it happens."),
        "auth": ("autopost_cli.auth:auth", "Say where the tokens of the bots lie; never shows one."),
        "bench": ("autopost_cli.bench:bench", "Measure it against other queues and against the machine."),
        "simulator": ("autopost_simulator.__main__:simulator", "Stand in for Telegram and MAX."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        module, _, name = self.lazy[cmd_name][0].partition(":")
        try:
            command = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as missing:
            raise click.ClickException(f"`{cmd_name}` is not installed here ({missing})") from missing
        assert isinstance(command, click.Command)  # noqa: S101 -- for the type checker
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.lazy.items()])


@click.group(cls=Commands)
@click.version_option(package_name="autopost-cli")
def main() -> None:
    """Posts to many channels: run it, watch it, ask it."""


if __name__ == "__main__":
    main()
