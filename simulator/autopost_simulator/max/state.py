"""The state of MAX besides chats and messages."""

from autopost_simulator.clock import Clock
from autopost_simulator.limits import Windows
from autopost_simulator.max.attachments import Attaching
from autopost_simulator.max.callbacks import Callbacks
from autopost_simulator.max.chats.chats import Chats
from autopost_simulator.max.chats.profile import Profiles
from autopost_simulator.max.chats.roster import Roster
from autopost_simulator.max.messages import Messages
from autopost_simulator.max.people import People
from autopost_simulator.max.settings import MaxSettings
from autopost_simulator.max.upload.files import MaxFiles
from autopost_simulator.max.upload.uploads import MaxUploads
from autopost_simulator.max.webhook.updates import Updates
from autopost_simulator.max.webhook.webhooks import Webhooks
from autopost_simulator.world import World


class MaxState:
    def __init__(self, world: World, windows: Windows, clock: Clock) -> None:
        self.settings = MaxSettings()
        self.files = MaxFiles(clock, self.settings)
        self.uploads = MaxUploads(self.files)
        self.attaching = Attaching(self.files, self.uploads)
        self.messages = Messages(world, windows, clock, self.attaching)
        self.callbacks = Callbacks(world, self.messages)
        self.webhooks = Webhooks(clock, self.settings)
        self.updates = Updates(self.webhooks)
        self.people = People()
        self.roster = Roster(self.people)
        self.profiles = Profiles(clock)
        self.chats = Chats(world, clock, self.roster)

    def clear(self) -> None:
        self.settings.clear()
        self.files.clear()
        self.uploads.clear()
        self.messages.closed_to_forwarding.clear()
        self.callbacks.clear()
        self.webhooks.clear()
        self.updates.clear()
        self.people.clear()
        self.roster.clear()
        self.profiles.clear()
        self.chats.clear()
