"""Every known error of the MAX API, each brought about once and compared by status, code and words.

MAX publishes no list of errors; these are the ones its documents, its clients and their users name. A row
says what brings it about: a request, a state of the simulated world, or, where only the platform's own
trouble can, a scripted fault.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import pytest
from autopost_simulator.max.refusal import CATALOGUE

CHANNEL = -7001
TOKEN = "max-token"
POST = f"/messages?chat_id={CHANNEL}"


@dataclass(frozen=True)
class Row:
    """``by`` is what brings it about."""

    name: str
    status: int
    code: str | None
    message: str
    by: Literal["request", "state", "fault"]
    bring_about: Callable[[Any], Awaitable[Any]]


async def with_a_dead_token(client):
    await client.control("tokens", {"platform": "max", "token": TOKEN, "state": "revoked"})
    return await client.max("GET", "/me")


async def to_someone_who_stopped_the_bot(client):
    await client.control("max/customers/9/start", {"chat_id": 228532008})
    await client.control("max/customers/9/stop", {})
    return await client.max("POST", "/messages?user_id=9", json={"text": "x"})


async def forwarded_from_a_closed_chat(client):
    mid = (await client.post()).body["message"]["body"]["mid"]
    await client.control("max/forwarding", {"chat_id": CHANNEL, "allowed": False})
    return await client.max("POST", POST, json={"link": {"type": "forward", "mid": mid}})


async def to_a_stranger(client):
    return await client.max("POST", "/messages?user_id=1", json={"text": "x"})


async def to_a_person_as_if_to_a_chat(client):
    return await client.max("POST", "/messages?chat_id=1", json={"text": "x"})


async def upload(client, kind, name, token=TOKEN):
    opened = (await client.max("POST", f"/uploads?type={kind}", token=token)).body
    form = aiohttp.FormData()
    form.add_field("data", b"bytes", filename=name)
    answer = await client.ask("POST", opened["url"].removeprefix(client.base), data=form)
    return opened, answer


async def attach(client, kind, payload):
    return await client.max("POST", POST, json={"attachments": [{"type": kind, "payload": payload}]})


async def a_file_still_in_processing(client):
    await client.control("max/settings", {"processing": {"file": 60}})
    _, answer = await upload(client, "file", "a.pdf")
    return await attach(client, "file", {"token": answer.body["token"]})


async def a_video_still_in_processing(client):
    await client.control("max/settings", {"processing": {"video": 60}})
    opened, _ = await upload(client, "video", "a.mp4")
    return await attach(client, "video", {"token": opened["token"]})


async def a_video_by_address(client):
    return await attach(client, "video", {"url": "https://example.org/a.mp4"})


async def a_file_by_address(client):
    return await attach(client, "file", {"url": "https://example.org/a.pdf"})


async def a_picture_of_nothing(client):
    return await attach(client, "image", {})


async def a_video_of_another_bot(client):
    await client.control("tokens", {"platform": "max", "token": "other"})
    opened, _ = await upload(client, "video", "a.mp4", token="other")
    return await attach(client, "video", {"token": opened["token"]})


async def a_text_too_long(client):
    return await client.post("a" * 4001)


async def a_button_without_its_app(client):
    button = {"type": "open_app", "text": "Open"}
    return await client.post(attachments=[{"type": "inline_keyboard", "payload": {"buttons": [[button]]}}])


async def a_video_nobody_can_play(client):
    opened, _ = await upload(client, "video", "a.mp4")
    await client.control(f"max/files/{opened['token']}", {"state": "unsupported"})
    return await attach(client, "video", {"token": opened["token"]})


async def a_picture_in_a_strange_format(client):
    return (await upload(client, "image", "a.exe"))[1]


async def too_fast(client):
    await client.control("chats", {"platform": "max", "id": CHANNEL, "limits": [{"count": 2, "per": 1}]})
    return [await client.post() for _ in range(3)][-1]


async def with_trouble_inside(client):
    await client.fault({"catalogue": "max.internal_error"}, times=1)
    return await client.post()


async def while_out_of_service(client):
    await client.fault({"catalogue": "max.service_unavailable"}, times=1)
    return await client.post()


async def deleted_twice(client):
    mid = (await client.post()).body["message"]["body"]["mid"]
    await client.max("DELETE", f"/messages?message_id={mid}")
    return await client.max("DELETE", f"/messages?message_id={mid}")


ROWS = [
    Row("verify_token", 401, "verify.token", "Invalid access_token", "state", with_a_dead_token),
    Row(
        "chat_denied",
        403,
        "chat.denied",
        "Key: error.dialog.suspended, args: [228532008,].",
        "state",
        to_someone_who_stopped_the_bot,
    ),
    Row(
        "forwarding_prohibited",
        403,
        "chat.denied",
        "Forwarding messages from this chat or channel is prohibited",
        "state",
        forwarded_from_a_closed_chat,
    ),
    Row("user_chat_not_found", 404, "chat.not.found", "Chat with user 1 not found", "request", to_a_stranger),
    Row(
        "dialog_not_found",
        404,
        "dialog.not.found",
        "error.dialog.notfound",
        "request",
        to_a_person_as_if_to_a_chat,
    ),
    Row(
        "attachment_not_ready",
        400,
        "attachment.not.ready",
        "Key: errors.process.attachment.file.not.processed",
        "state",
        a_file_still_in_processing,
    ),
    Row(
        "media_not_ready",
        400,
        "attachment.not.ready",
        "Key: errors.process.attachment.video.not.processed",
        "state",
        a_video_still_in_processing,
    ),
    Row(
        "missing_token",
        400,
        "proto.payload",
        "Missing `token` in video attachment",
        "request",
        a_video_by_address,
    ),
    Row("missing_token", 400, "proto.payload", "Missing `token` in video attachment", "request", a_file_by_address),
    Row(
        "no_photos",
        400,
        "proto.payload",
        "No `photos`, `url` or `token` provided. Check payload.",
        "request",
        a_picture_of_nothing,
    ),
    Row(
        "movie_not_owner",
        400,
        "proto.payload",
        "Key: errors.process.attachment.movie.not.owner",
        "request",
        a_video_of_another_bot,
    ),
    Row("text_too_long", 400, "proto.payload", "text: size must be between 0 and 4000", "request", a_text_too_long),
    Row("web_app_null", 400, "proto.payload", "Field 'webApp' cannot be null", "request", a_button_without_its_app),
    Row(
        "media_not_supported",
        400,
        "proto.payload",
        "errors.process.attachment.video.not.supported",
        "state",
        a_video_nobody_can_play,
    ),
    Row(
        "extension_forbidden",
        415,
        "",
        "File extension is forbidden",
        "request",
        a_picture_in_a_strange_format,
    ),
    Row("too_many_requests", 429, "too.many.requests", "", "request", too_fast),
    Row("internal_error", 500, "internal.error", "Internal error 0a1b2c3d", "fault", with_trouble_inside),
    Row("service_unavailable", 503, "service.unavailable", "", "fault", while_out_of_service),
    Row("failed_with_200", 200, None, "Message not found", "request", deleted_twice),
]

NOT_BY_A_REQUEST = {
    "internal_error": "only a fault inside the platform answers 500; its words end with an id of that fault",
    "service_unavailable": "only a platform out of service answers 503",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.bring_about.__name__}")
async def test_an_error_has_its_status_code_and_words(client, row):
    answer = await row.bring_about(client)

    expected = {"code": row.code, "message": row.message}
    if row.code is None:
        expected = {"success": False, "message": row.message}
    assert (answer.status, answer.body) == (row.status, expected)


def test_only_what_no_request_can_bring_about_is_scripted():
    assert {row.name for row in ROWS if row.by == "fault"} == set(NOT_BY_A_REQUEST)


@pytest.mark.parametrize("row", [row for row in ROWS if row.code is not None], ids=lambda row: row.name)
async def test_a_fault_script_can_name_every_error(client, row):
    await client.fault({"catalogue": f"max.{row.name}"}, times=1)

    answer = await client.post()

    assert (answer.status, answer.body["code"]) == (row.status, row.code)
    assert CATALOGUE[row.name][:2] == (row.status, row.code)


async def test_a_gateway_answers_html(client):
    for status in (502, 504):
        await client.fault({"html": status}, times=1)
        answer = await client.post()
        assert (answer.status, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
