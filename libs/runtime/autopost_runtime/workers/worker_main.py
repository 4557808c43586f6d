"""A worker process: reads calls and writes results until its input ends. It keeps no state and may be killed.

The CPU limit is a kernel timer whose signal ends the process, so it works while C code holds the GIL and when the
service is gone.
"""

import resource
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any, get_type_hints

import msgspec

_HEAD = struct.Struct(">I")


class WorkerCall(msgspec.Struct, frozen=True, kw_only=True):
    function: str
    """``module:name``."""
    cpu: float
    argument: msgspec.Raw


class Returned(msgspec.Struct, frozen=True, kw_only=True, tag="returned"):
    result: msgspec.Raw


class WorkerFailure(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    code: str


_decoder: msgspec.msgpack.Decoder[WorkerCall] = msgspec.msgpack.Decoder(WorkerCall)
_encode = msgspec.msgpack.encode


def main(memory: int) -> None:
    for name in (signal.SIGINT, signal.SIGTERM):  # the service handles them and then closes our input
        signal.signal(name, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with suppress(ValueError, OSError):  # not supported on every system
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    calls, results = sys.stdin.buffer, sys.stdout.buffer
    while head := calls.read(_HEAD.size):
        result = _encode(_result(_decoder.decode(calls.read(*_HEAD.unpack(head)))))
        results.write(_HEAD.pack(len(result)))
        results.write(result)
        results.flush()


def _result(call: WorkerCall) -> Returned | WorkerFailure:
    function, decoder = _function(call.function)
    signal.setitimer(signal.ITIMER_PROF, call.cpu)
    try:
        return Returned(result=msgspec.Raw(_encode(function(decoder.decode(call.argument)))))
    except MemoryError:
        raise  # the state of this process is no longer reliable
    except Exception as exc:
        return WorkerFailure(code=type(exc).__name__)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@lru_cache(maxsize=64)
def _function(name: str) -> tuple[Callable[[Any], object], msgspec.msgpack.Decoder[Any]]:
    module, _, attribute = name.partition(":")
    function = getattr(import_module(module), attribute)
    hints = get_type_hints(function)
    [argument] = (hint for parameter, hint in hints.items() if parameter != "return")
    return function, msgspec.msgpack.Decoder(argument)


if __name__ == "__main__":
    main(int(sys.argv[1]))
