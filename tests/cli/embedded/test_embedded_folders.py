"""Folders that are used by one process at a time, and scratch ones that do not pile up."""

import os
import socket
import stat
from pathlib import Path

import pytest
from autopost_cli.embedded.folders import FolderInUseError, held, scratch
from autopost_cli.embedded.places import own_folder
from autopost_cli.embedded.ports import HOST, free_port, is_free


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(FolderInUseError, match=f"by process {os.getpid()};"), held(tmp_path):
        pass

    with held(tmp_path):
        pass


def test_a_scratch_folder_is_gone_afterwards(tmp_path: Path) -> None:
    with scratch("try-", tmp_path) as folder:
        (folder / "file").write_text("something")

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / "try-left"
    left.mkdir()
    (left / "lock").write_text("1")

    with scratch("try-", tmp_path) as folder, scratch("try-", tmp_path) as other:
        assert sorted(tmp_path.iterdir()) == sorted([folder, other])


def test_our_folder_is_readable_for_all_and_writable_for_us_alone() -> None:
    assert stat.S_IMODE(own_folder().stat().st_mode) == 0o755


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.create_server((HOST, free_port())) as server:
        assert not is_free(server.getsockname()[1])
