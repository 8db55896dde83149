"""What a machine is given: its commands, its script, its folders, its user."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local.machine_home import build_home, clear_land, prepare_land
from local.machine_users import MachineUsers


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["echo", "-n", "a b"], "a b"),
        (["-n", "-u", "root", "echo", "hi"], "hi\n"),
        (["-E", "--preserve-env=A", "--", "echo", "-x"], "-x\n"),
        (["NAME=value", "sh", "-c", "echo $NAME"], "value\n"),
    ],
)
def test_sudo_runs_the_command_as_who_one_is(tmp_path: Path, arguments: list[str], printed: str) -> None:
    """Options of sudo are understood and dropped; the command's own are left alone."""
    machine = build_home(tmp_path, "i-1", b"", sys.executable, None)
    command = [str(machine.folder / "bin" / "sudo"), *arguments]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == printed


def test_compressed_user_data_is_unpacked(tmp_path: Path) -> None:
    """Gzip is understood, as the clouds' images do; anything else is taken as it is."""
    packed = build_home(tmp_path, "i-1", gzip.compress(b"#!/bin/sh\n"), sys.executable, None)
    plain = build_home(tmp_path, "i-2", b"#!/bin/bash\n", sys.executable, None)
    assert (packed.user_data.read_bytes(), plain.user_data.read_bytes()) == (b"#!/bin/sh\n", b"#!/bin/bash\n")


def test_the_first_process_gets_what_was_promised_and_nothing_else(tmp_path: Path) -> None:
    """The environment is made new: nothing of this process leaks into a machine."""
    machine = build_home(tmp_path, "i-1", b"", sys.executable, None)
    environment = machine.environment("i-1", {"METADATA": "http://127.0.0.1:8080"}, "MARKER")
    assert environment["METADATA"] == "http://127.0.0.1:8080"
    assert environment["PATH"].split(":")[0] == str(machine.folder / "bin")
    assert len(environment) == 7


def test_machines_of_a_closed_state_folder_live_where_their_users_get_at_them(tmp_path: Path) -> None:
    """Outside when the folder is closed to others, inside when it is open or nobody else comes; cleared afterwards."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    elsewhere = prepare_land(closed, separate_users=True)
    try:
        assert closed not in elsewhere.parents
        assert elsewhere.stat().st_mode & 0o001
        assert prepare_land(tmp_path / "any", separate_users=False) == tmp_path / "any" / "machines"
    finally:
        clear_land(closed)
    assert not elsewhere.exists()


def test_no_user_is_given_to_two_machines() -> None:
    """Two local clouds on one computer never share a user, and one that is given back is free again."""
    if os.geteuid() != 0:
        pytest.skip("only root can give machines users of their own")
    clouds = [MachineUsers(first_uid=60900), MachineUsers(first_uid=60900)]
    if not clouds[0].separate:
        pytest.skip("no Python here that other users can run")
    taken = [cloud.take() for cloud in clouds for _ in range(2)]
    assert len({user.uid for user in taken}) == 4
    clouds[0].give_back(taken[0])
    again = clouds[1].take()
    assert again.uid == taken[0].uid
    for user in [*taken[1:], again]:
        clouds[0].give_back(user)


def test_the_systems_own_users_are_never_given_to_machines() -> None:
    """A machine's user is ended with it, so a user below the ordinary ones is refused."""
    with pytest.raises(ValueError, match="user 0"):
        MachineUsers(first_uid=0)
