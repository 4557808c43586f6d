"""The process that reads what strangers wrote: question in, answer out, until its input ends.

It may be killed at any moment: nothing is kept here. A limit on its memory makes a document that grows end it alone.
"""

import resource
import signal
import struct
import sys
from contextlib import suppress

import msgspec

from autopost_ingest.pull.reading import Question, answer

MEMORY = 1024**3

_decoder: msgspec.msgpack.Decoder[Question] = msgspec.msgpack.Decoder(Question)
_encode = msgspec.msgpack.encode


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which then closes our input
    with suppress(ValueError, OSError):  # not every system can
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while head := questions.read(4):
        body = questions.read(struct.unpack(">I", head)[0])
        told = _encode(answer(_decoder.decode(body)))
        answers.write(struct.pack(">I", len(told)) + told)
        answers.flush()


if __name__ == "__main__":
    main()
