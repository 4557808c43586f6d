"""Wire the bot and run it."""

from autopost_adapters.max.send import MaxAdapter
from autopost_contracts.subjects import Topology
from autopost_runtime.http.client import HttpClient
from autopost_runtime.http.web import serve
from autopost_runtime.lifecycle.service import Service, run
from autopost_runtime.nats.bus import open_bus
from autopost_runtime.postgres.pool import open_database
from autopost_runtime.secrets.credentials import Credentials
from autopost_runtime.telemetry.logs import get_logger

from autopost_bot.config import BotConfig, allow_open_files
from autopost_bot.conversation.gateway import ConversationGateway
from autopost_bot.conversation.pipeline import conversations
from autopost_bot.gateway import Gateway
from autopost_bot.http import application
from autopost_bot.inbox import Inbox
from autopost_bot.stream.announce import ChatAnnouncer
from autopost_bot.stream.hub import Hub
from autopost_bot.webhook_checks import WebhookChecks


async def work(config: BotConfig, service: Service) -> None:
    topology = Topology(config.nats_namespace)
    allow_open_files()
    async with (
        open_database(config, service) as database,
        open_bus(config, service) as bus,
        HttpClient(ca_bundle=config.ca_bundle) as http,
    ):
        gateway = Gateway(database, config.database_pool)
        credentials = Credentials(gateway)
        timeout = config.bot_provider_timeout
        platform = MaxAdapter(http, config.max_api_url, timeout, timeout)
        checks = WebhookChecks(gateway, credentials, platform, config.bot_webhook_interval)
        inbox = Inbox(gateway, config.poll_interval)
        hub = Hub(gateway, bus)
        announcer = ChatAnnouncer(hub, bus)

        async def hears_wakeups() -> bool:
            """Ready once subscribed to wakeups, or without NATS, when only the poll finds work."""
            return bus.bound(topology.bot_wakeups) or not bus.connected

        service.health.check("database", gateway.ping)
        service.health.check("wakeups", hears_wakeups)
        service.health.inform("nats", lambda: bus.connected)
        service.spawn(inbox.run(), "inbox")
        service.spawn(bus.listen(topology.chats, hub.on_wakeup), "chats")
        service.spawn(hub.run(), "chat poll")
        service.spawn(checks.run(), "webhook checks")
        app = application(gateway, bus, hub, stream_clients=config.stream_clients, cors_origins=config.origins)
        async with (
            await serve(
                app,
                config.http_host,
                config.http_port,
                connections=config.all_connections,
                connections_per_address=config.connections_per_address or config.all_connections,
            ) as site,
            conversations(
                config,
                service,
                ConversationGateway(database),
                adapters={platform.platform: platform},
                identities=credentials,
                tell=announcer.announce,
            ) as schedule,
        ):
            service.spawn(bus.wakeups(topology.bot_wakeups, schedule.on_wakeup), "wakeups")
            get_logger().info("bot.listening", url=site.url)
            service.health.begun()
            await service.stopping.wait()
            hub.close()  # before the server stops: it would wait for open streams


if __name__ == "__main__":
    run("bot", BotConfig, work)
