"""The state of Telegram: chats and messages of the world, sent files, remote pages, updates and pressed buttons."""

from autopost_simulator.clock import Clock
from autopost_simulator.telegram.chats.bot_settings import BotSettings
from autopost_simulator.telegram.sending.take_in import Intake
from autopost_simulator.telegram.storage.files import TelegramFiles
from autopost_simulator.telegram.storage.remote import Web
from autopost_simulator.telegram.updates.callbacks import CallbackQueries
from autopost_simulator.telegram.updates.updates import BotUpdates
from autopost_simulator.world import World


class TelegramState:
    def __init__(self, world: World, clock: Clock) -> None:
        self.world = world
        self.clock = clock
        self.files = TelegramFiles()
        self.pages = Web()
        self.intake = Intake(self.files, self.pages)
        self.updates = BotUpdates(clock)
        self.callbacks = CallbackQueries(clock)
        self.settings = BotSettings()

    def clear(self) -> None:
        """Also closes the temporary files."""
        self.files.clear()
        self.pages.clear()
        self.updates.clear()
        self.callbacks.clear()
        self.settings.clear()
