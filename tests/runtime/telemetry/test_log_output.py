"""A log that cannot be written: lines are lost and counted, and everything else goes on."""

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from autopost_runtime.telemetry.log_output import PAGE, Descriptor, Stream, output_of

Measured = Callable[[], str]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def lost(measured: Measured) -> dict[str, float]:
    lines = [line for line in measured().splitlines() if line.startswith("autopost_log_lines_lost_total{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in lines}


def fill(writer: int) -> None:
    """Until nothing more fits; the pipe itself stays one that blocks."""
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while os.write(writer, b"x" * PAGE):
            pass
    except BlockingIOError:
        fcntl.fcntl(writer, fcntl.F_SETFL, flags)


def test_a_full_disk_loses_lines_and_counts_them(measured: Measured) -> None:
    with Path("/dev/full").open("w") as full:
        output = output_of(full)
        for _ in range(3):
            output.write("line\n")
            output.flush()

    assert lost(measured) == {"ENOSPC": 3}


def test_a_reader_that_has_gone_loses_lines_and_counts_them(pipe: tuple[int, int], measured: Measured) -> None:
    os.close(pipe[0])

    Descriptor(pipe[1]).write("line\n")

    assert lost(measured) == {"EPIPE": 1}


def test_a_reader_that_does_not_read_is_waited_for_once_and_never_for_ever(
    pipe: tuple[int, int], measured: Measured
) -> None:
    output = Descriptor(pipe[1])
    fill(pipe[1])

    for _ in range(1000):
        output.write("line\n")

    assert lost(measured) == {"EAGAIN": 1000}


def test_lines_stay_whole_when_the_reader_comes_back(pipe: tuple[int, int], measured: Measured) -> None:
    reader, writer = pipe
    output = Descriptor(writer)
    fill(writer)
    os.read(reader, PAGE * 2)
    long = json.dumps({"line": "y" * PAGE * 5}) + "\n"

    output.write(long)
    output.write('{"line": "lost"}\n')
    text, read = b"", threading.Event()

    def drain() -> None:
        nonlocal text
        while chunk := os.read(reader, PAGE * 100):
            text += chunk
        read.set()

    thread = threading.Thread(target=drain)
    thread.start()
    while b'y"}' not in text:
        output.write("")
    output.write('{"line": "after"}\n')
    os.close(writer)
    thread.join()

    lines = text.lstrip(b"x").decode().splitlines()
    assert [json.loads(line)["line"][:5] for line in lines] == ["yyyyy", "after"]
    assert lost(measured)["EAGAIN"] >= 1


def test_no_standard_output_at_all_loses_every_line(measured: Measured) -> None:
    output_of(None).write("line\n")
    Stream(None).write("line\n")

    assert lost(measured) == {"EBADF": 2}


def test_a_slow_reader_gets_every_line(pipe: tuple[int, int], measured: Measured) -> None:
    reader, writer = pipe
    output = Descriptor(writer)
    got: list[bytes] = []

    def slowly() -> None:
        while chunk := os.read(reader, 1000):
            got.append(chunk)

    thread = threading.Thread(target=slowly)
    thread.start()
    for number in range(5000):
        output.write(f"{number:060}\n")
    os.close(writer)
    thread.join()

    assert [int(line) for line in b"".join(got).splitlines()] == list(range(5000))
    assert lost(measured) == {}
