"""Send a text, media or an album, with errors in the order of Telegram's checks."""

from typing import Any

from autopost_simulator.exchange import ProviderCall
from autopost_simulator.telegram import shapes
from autopost_simulator.telegram.keyboard import inline_keyboard, refuse_buttons_in
from autopost_simulator.telegram.markup.formatting import Formatted
from autopost_simulator.telegram.place import find_chat, refuse_without_rights
from autopost_simulator.telegram.refusal import RefusedInside, named
from autopost_simulator.telegram.request.params import Params
from autopost_simulator.telegram.sending.album import read_album, refuse_animation_in_disguise
from autopost_simulator.telegram.sending.location import read_location
from autopost_simulator.telegram.sending.media import RequestedMedia, read_piece
from autopost_simulator.telegram.sending.options import common_options, has_address, link_preview
from autopost_simulator.telegram.sending.poll import read_poll
from autopost_simulator.telegram.sending.posting import Posting
from autopost_simulator.telegram.sending.take_in import Intake
from autopost_simulator.telegram.standing import Kind, MediaKind
from autopost_simulator.telegram.storage.files import TelegramFile, TelegramFiles
from autopost_simulator.telegram.text import message_text, raw_text, refuse_long_caption
from autopost_simulator.world import Bot, World


class Sending:
    def __init__(self, world: World, posting: Posting, files: TelegramFiles, intake: Intake) -> None:
        self._world = world
        self._posting = posting
        self._files = files
        self._intake = intake
        self._albums = 0

    def message(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        preview = link_preview(params)
        raw = raw_text(params)
        buttons = inline_keyboard(params)
        chat = find_chat(self._world, params, "write")
        refuse_without_rights(chat, "text")
        refuse_buttons_in(chat, buttons)
        formatted = message_text(raw, may_be_empty=has_address(preview))
        extra = common_options(chat, params) | preview
        self._posting.take_slot(bot, chat)
        return self._posting.show(bot, chat, formatted, buttons, extra, call)

    def media(self, kind: MediaKind, bot: Bot, params: Params, call: ProviderCall) -> Any:
        piece = read_piece(params, kind)
        buttons = inline_keyboard(params)
        chat = find_chat(self._world, params, "write")
        refuse_buttons_in(chat, buttons)
        extra = common_options(chat, params)
        file = self._intake.take_in(bot, piece)
        refuse_long_caption(piece.caption)
        refuse_without_rights(chat, kind)
        self._posting.take_slot(bot, chat)
        return self._posting.show(bot, chat, piece.caption, buttons, extra | self._media_extra(bot, piece, file), call)

    def poll(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        return self._simple(bot, params, call, "poll", read_poll(params))

    def location(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        return self._simple(bot, params, call, "location", read_location(params))

    def _simple(self, bot: Bot, params: Params, call: ProviderCall, kind: Kind, field: dict[str, Any]) -> Any:
        buttons = inline_keyboard(params)
        chat = find_chat(self._world, params, "write")
        refuse_without_rights(chat, kind)
        refuse_buttons_in(chat, buttons)
        extra = common_options(chat, params) | {kind: field}
        self._posting.take_slot(bot, chat)
        return self._posting.show(bot, chat, Formatted("", []), buttons, extra, call)

    def album(self, bot: Bot, params: Params, call: ProviderCall) -> Any:
        """All or nothing. Buttons are ignored, not refused; an album takes one slot."""
        pieces = read_album(params)
        chat = find_chat(self._world, params, "write")
        extra = common_options(chat, params)
        refuse_animation_in_disguise(self._files, pieces)
        files = [self._album_item(bot, piece, number) for number, piece in enumerate(pieces, start=1)]
        for piece in pieces:
            refuse_without_rights(chat, piece.kind)
        self._posting.take_slot(bot, chat)
        extra |= self._group(pieces)
        return [
            self._posting.show(bot, chat, piece.caption, None, extra | self._media_extra(bot, piece, file), call)
            for piece, file in zip(pieces, files, strict=True)
        ]

    def _album_item(self, bot: Bot, piece: RequestedMedia, number: int) -> TelegramFile:
        try:
            return self._intake.take_in(bot, piece)
        except RefusedInside as refused:
            raise named("failed_to_send_item", number=number, code=refused.raw) from None

    def _group(self, pieces: list[RequestedMedia]) -> dict[str, Any]:
        if len(pieces) == 1:
            return {}
        self._albums += 1
        return {"media_group_id": str(13_000_000_000_000_000 + self._albums)}

    def _media_extra(self, bot: Bot, piece: RequestedMedia, file: TelegramFile) -> dict[str, Any]:
        fields = shapes.media_fields(file, self._files.id_for(bot, file))
        return {"media": shapes.media_shown(file)} | fields | piece.options
