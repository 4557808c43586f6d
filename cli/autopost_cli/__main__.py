"""The ``autopost`` command. Subcommands are imported on use, so that ``--help`` stays fast."""

import importlib
from typing import ClassVar

import click


class Commands(click.Group):
    """The import path of each subcommand, and its line in the list of commands.

    ``bench`` and ``simulator`` are packages of their own for development; the image of the command does not have them.
    """

    lazy: ClassVar[dict[str, tuple[str, str]]] = {
        "up": ("autopost_cli.stack.up:up", "Start Postgres, NATS, S3, the simulator and the services."),
        "demo": ("autopost_cli.demo:demo", "Show the six guarantees on a running system, one by one."),
        "migrate": ("autopost_cli.schema.migrate:migrate", "Update the database schema to this version."),
        "seed": ("autopost_cli.schema.seed:command", "Insert two demo workspaces into the database."),
        "post": (
            "autopost_cli.post.post:post",
            "Send a post, see what became of it, cancel or reschedule it.",
        ),
        "queue": (
            "autopost_cli.queue.queue:queue",
            "Show the queue and recent errors; requeue, skip, release or resolve deliveries.",
        ),
        "channel": (
            "autopost_cli.channel.channel:channel",
            "List and check channels; pause, resume, disable or enable them.",
        ),
        "workspace": (
            "autopost_cli.workspace.workspace:workspace",
            "List workspaces; pause, resume or disable them.",
        ),
        "bot": (
            "autopost_cli.bot.bot:bot",
            "Rules, chats and webhook of the shop bot; long-running actions in a chat.",
        ),
        "publication": (
            "autopost_cli.publication.publication:publication",
            "Draft, preview, approve and schedule publications; show their calendar.",
        ),
        "dlq": ("autopost_cli.publication.dlq:dlq", "List, show and retry the dead letters of publications."),
        "verify": ("autopost_cli.verify.verify:verify", "Check that every delivery matches its events."),
        "why": (
            "autopost_cli.why.why:why",
            "Explain what a post, a delivery or a channel waits for, and what would release it.",
        ),
        "payload": (
            "autopost_cli.payload.payload:payload",
            "Read a stored raw payload: a platform's answer or a sender's request.",
        ),
        "events": ("autopost_cli.events.events:events", "Follow the events of the audit stream."),
        "auth": (
            "autopost_cli.auth.auth:auth",
            "Manage bot credentials and status tokens; never shows a stored secret.",
        ),
        "bench": ("autopost_bench:bench", "Measure it against other queues and against the machine."),
        "simulator": ("autopost_simulator.__main__:simulator", "Simulate the Telegram and MAX APIs."),
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
            raise click.ClickException(
                f"`autopost {cmd_name}` is not installed here ({missing}). In a checkout, `make setup` installs it."
            ) from missing
        assert isinstance(command, click.Command)  # noqa: S101 -- for the type checker
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self.lazy.items()])


@click.group(cls=Commands)
@click.version_option(package_name="autopost-cli")
def main() -> None:
    """Publish posts to many channels: run the system, operate it, inspect it."""


if __name__ == "__main__":
    main()
