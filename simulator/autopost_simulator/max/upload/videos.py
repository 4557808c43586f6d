"""``GET /videos/{token}``: where a video can be watched."""

from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.max.operation_call import OperationCall
from autopost_simulator.max.refusal import MaxError
from autopost_simulator.max.upload.files import MaxFiles
from autopost_simulator.world import Bot


class Videos:
    """Width, height and duration are made up: the bytes of videos are never read."""

    def __init__(self, files: MaxFiles) -> None:
        self._files = files
        self.table = {"/videos/{token}": {"GET": self.get}}

    def get(self, bot: Bot, asked: OperationCall, call: ProviderCall) -> Any:
        file = self._files.find(asked.path["token"])
        if file is None or file.kind != "video" or file.token != asked.path["token"]:
            raise MaxError(404, "video.not.found", f"Video {asked.path['token']} not found")  # words not observed
        url = f"{asked.origin}/max-files/{file.id}"
        return {
            "token": file.token,
            "urls": {"mp4_720": url},
            "thumbnail": {"url": url},
            "width": 1280,
            "height": 720,
            "duration": 1,
        }
