"""Compile a reply into the plan that the adapter of MAX sends: the same compiler as for posts."""

from autopost_adapters.max.compile import compile_content
from autopost_contracts.payload import Content, Flags
from autopost_contracts.plan import Plan, Profile

from autopost_bot.engine.turn import Reply

PROFILE = Profile(profile_hash="bot", platform="max", settings={"overflow": "split"})
"""A long answer goes out in parts. Replies are plain text: what a customer wrote is never markup."""


class UnsendableReply(Exception):  # noqa: N818  named for what happened
    """No plan can express it; the message says why."""


def compile_reply(reply: Reply) -> Plan:
    compiled = compile_content(Content(text=reply.text, buttons=reply.buttons), Flags(), PROFILE)
    if compiled.plan is None:
        raise UnsendableReply("; ".join(problem.message for problem in compiled.problems))
    return compiled.plan
