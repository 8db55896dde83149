"""The task's world, and the machine."""

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from spotferry.agent import machine
from spotferry.agent import world as world_module
from spotferry.agent.errors import StepFailed
from spotferry.agent.settings import Places
from spotferry.agent.world import World, checked_variables, is_self_link


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world of the current user."""
    return World(Places(tmp_path, privileged=False))


def filled(root: Path, *paths: str) -> Path:
    """A directory with these files."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "spotferry-inputs"])
def test_work_directory_is_one_below_the_home(world: World, name: str) -> None:
    """A name that leads elsewhere is a failed start, not a directory."""
    with pytest.raises(StepFailed):
        world.work_dir(name)
    assert world.work_dir("llama.cpp") == world.home / "llama.cpp"


def test_tree_takes_the_work_directorys_place(world: World) -> None:
    """Nothing of the old one stays, also where it was closed; `cd name` works from inside."""
    work = world.work_dir("w")
    filled(work, "closed/old")
    (work / "closed").chmod(0o500)
    place = world.unpack_place(work)
    filled(place, "new")
    world.put_in_place(place, work, link=True)
    assert sorted(os.listdir(work)) == ["new", "w"]  # noqa: PTH208  (names alone)
    done = subprocess.run(["/bin/bash", "-c", "cd w && cd w && cat new"], cwd=work, capture_output=True, check=True)
    assert done.stdout == b"new"
    assert is_self_link("w", work)
    assert os.listdir(world.home) == ["w"]  # noqa: PTH208  (names alone)


def test_entry_of_the_same_name_is_left_alone(world: World) -> None:
    """A work directory that holds one named like itself keeps it, and archives hold it."""
    work = world.work_dir("w")
    filled(work, "w/inner")
    world.link_self(work)
    assert (work / "w" / "inner").exists()
    assert not is_self_link("w", work)


def account(home: Path) -> pwd.struct_passwd:
    """The current user as the task's, with this home."""
    return pwd.struct_passwd(("spotferry", "x", os.getuid(), os.getgid(), "", str(home), "/bin/bash"))


@pytest.mark.parametrize("known", [True, False], ids=["an image's own user", "no user"])
@pytest.mark.parametrize("with_sudo", [True, False])
def test_the_tasks_user_may_become_root(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    known: bool,  # noqa: FBT001 (a case)
    with_sudo: bool,  # noqa: FBT001 (a case)
) -> None:
    """Also where the image has that user already; a machine without sudo stays without."""
    accounts = {world_module.TASK_USER: account(tmp_path / "own")} if known else {}
    commands: list[list[str]] = []

    def add(command: list[str]) -> None:
        commands.append(command)
        accounts[command[-1]] = account(tmp_path / "own")

    monkeypatch.setattr("pwd.getpwnam", lambda name: accounts[name])
    monkeypatch.setattr(world_module, "_run", add)
    monkeypatch.setattr(world_module, "_SUDOERS", tmp_path / "sudoers.d" / "spotferry")
    if with_sudo:
        (tmp_path / "sudoers.d").mkdir()
    for _ in range(2):
        made = World(Places(tmp_path, privileged=True))
    assert (made.owner, made.home) == ((os.getuid(), os.getgid()), tmp_path / "own")
    assert made.home.is_dir()
    assert len(commands) == (0 if known else 1)
    rules = tmp_path / "sudoers.d" / "spotferry"
    assert rules.exists() is with_sudo
    if with_sudo:
        assert rules.read_text() == "spotferry ALL=(ALL) NOPASSWD:ALL\n"
        assert rules.stat().st_mode & 0o777 == 0o440


def test_environment_is_written_down(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """PATH comes from the machine, the rest is the same everywhere; what the job gives wins."""
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "machine")
    environment = world.environment({"LANG": "de_DE.UTF-8", "A": "1"})
    assert environment["PATH"] == f"{world.home}/.local/bin:/bin"
    assert (environment["LANG"], environment["A"], environment["HOME"]) == ("de_DE.UTF-8", "1", str(world.home))
    assert "AWS_SECRET_ACCESS_KEY" not in environment


def test_variables_that_no_process_can_have_are_refused() -> None:
    """The message names the variable, never its value."""
    assert checked_variables({"A_1": 5}) == {"A_1": "5"}
    with pytest.raises(StepFailed, match="1A") as refused:
        checked_variables({"1A": "hidden"})
    assert "hidden" not in str(refused.value)
    with pytest.raises(StepFailed, match="B"):
        checked_variables({"B": "a\0b"})


def test_facts_are_text() -> None:
    """What hello says of the machine."""
    facts = machine.facts()
    assert set(facts) == {"arch", "kernel", "cpus", "memory_mib"}
    assert all(isinstance(value, str) for value in facts.values())
    assert int(facts["cpus"]) >= 1
    assert int(facts["memory_mib"]) > 100


@pytest.mark.parametrize(("name", "arch"), [("AMD64", "x86_64"), ("aarch64", "arm64"), ("x86_64", "x86_64")])
def test_arch_has_one_name(monkeypatch: pytest.MonkeyPatch, name: str, arch: str) -> None:
    """Whatever the system calls it."""
    monkeypatch.setattr("platform.machine", lambda: name)
    assert machine.arch() == arch


def test_machine_is_shut_down_by_whatever_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is missing or fails is followed by the next; who is not root never takes the last ways."""
    for name, status in (("sudo", 1), ("systemctl", 0), ("poweroff", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/calls\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    machine.shut_down()
    assert (tmp_path / "calls").read_text().split() == ["sudo"]
    monkeypatch.setattr("os.geteuid", lambda: 0)
    machine.shut_down()
    assert (tmp_path / "calls").read_text().split() == ["sudo", "sudo", "systemctl"]
