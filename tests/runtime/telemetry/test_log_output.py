"""A log that cannot be written: lines are lost and counted, and everything else goes on."""

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from autopost_runtime.telemetry.log_output import MOST_WAITING, PAGE, Descriptor, Stream, output_of

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


@contextlib.contextmanager
def opened(descriptor: int) -> Iterator[Descriptor]:
    """Its thread must not write to what another test opens."""
    output = Descriptor(descriptor)
    try:
        yield output
    finally:
        output.close(timedelta())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


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


def test_a_reader_that_does_not_read_is_never_waited_for(pipe: tuple[int, int], measured: Measured) -> None:
    line = "x" * 1023 + "\n"
    with opened(pipe[1]) as output:
        fill(pipe[1])

        for _ in range(MOST_WAITING // len(line) + 1000):
            output.write(line)

        assert lost(measured) == {"EAGAIN": 1000}


def test_a_reader_of_a_page_each_half_second_slows_nobody_and_gets_every_line(
    pipe: tuple[int, int], measured: Measured
) -> None:
    reader, writer = pipe
    fill(writer)
    got: list[bytes] = []
    written = threading.Event()

    def slowly() -> None:
        while b"the last" not in b"".join(got[-2:]):
            got.append(os.read(reader, PAGE))
            written.wait(0.5)

    thread = threading.Thread(target=slowly)
    thread.start()
    with opened(writer) as output:
        begun = time.monotonic()
        for number in range(1000):
            output.write(f"{number:0200}\n")
        output.write("the last\n")
        took = time.monotonic() - begun
        written.set()
        thread.join()

    lines = b"".join(got).lstrip(b"x").splitlines()
    assert [int(line) for line in lines[:-1]] == list(range(1000))
    assert took < 5  # waiting for the reader, it would be 25
    assert lost(measured) == {}


def test_a_line_that_was_cut_off_does_not_spoil_the_next(pipe: tuple[int, int], measured: Measured) -> None:
    """Its file may be one that somebody rotates: what cannot be written now can be later."""
    reader, writer = pipe
    with opened(writer) as output:
        fill(writer)
        os.read(reader, PAGE)
        output.write("y" * PAGE * 2 + "\n")
        output.write("lost\n")
        kept = os.dup(writer)
        os.dup2(full := os.open("/dev/full", os.O_WRONLY), writer)
        os.close(full)
        wait_until(lambda: sum(lost(measured).values()) >= 2)
        os.dup2(kept, writer)
        os.close(kept)
        os.read(reader, PAGE * 100)

        output.write("whole\n")

        assert os.read(reader, PAGE * 100).split(b"\n")[-2:] == [b"whole", b""]


def test_lines_stay_whole_when_the_reader_comes_back(pipe: tuple[int, int], measured: Measured) -> None:
    reader, writer = pipe
    output = Descriptor(writer)
    fill(writer)
    os.read(reader, PAGE * 2)
    long = json.dumps({"line": "y" * PAGE * 5}) + "\n"

    output.write(long)
    for _ in range(2):
        output.write('{"line": "z' + "z" * (MOST_WAITING - PAGE * 4) + '"}\n')
    text, read = b"", threading.Event()

    def drain() -> None:
        nonlocal text
        while chunk := os.read(reader, PAGE * 100):
            text += chunk
        read.set()

    thread = threading.Thread(target=drain)
    thread.start()
    wait_until(lambda: b'z"}' in text)
    output.write('{"line": "after"}\n')
    output.close()
    os.close(writer)
    thread.join()

    lines = text.lstrip(b"x").decode().splitlines()
    assert [json.loads(line)["line"][:5] for line in lines] == ["yyyyy", "zzzzz", "after"]
    assert lost(measured) == {"EAGAIN": 1}


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
    output.close(timedelta(minutes=1))
    os.close(writer)
    thread.join()

    assert [int(line) for line in b"".join(got).splitlines()] == list(range(5000))
    assert lost(measured) == {}
