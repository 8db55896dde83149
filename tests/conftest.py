"""Fixtures that several rooms of tests share."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.services import Service, clean_environment, free_port
from spotferry.agent.removal import remove


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an AWS emulator of this session's own, with nothing deployed; tests name their resources apart."""
    folder = tmp_path_factory.mktemp("emulator")
    service = Service("emulator", folder)
    port = free_port()
    command = [sys.executable, "-m", "local.emulator", "--port", str(port), "--state-dir", str(folder)]
    try:
        service.start(command, clean_environment(folder), tied=True)
        service.wait_until_it_answers(f"http://127.0.0.1:{port}/_ministack/health")
        yield f"http://127.0.0.1:{port}"
    finally:
        service.end()


@pytest.fixture
def deep_tree(tmp_path: Path) -> Iterator[Path]:
    """A directory that holds one more than Python's stack is deep, each in the one before; gone again at the end.

    Left there it would end the session of whoever's pytest tidies the temporary directories up.
    """
    top, begun = tmp_path / "deep", os.open(".", os.O_RDONLY)
    top.mkdir()
    try:
        os.chdir(top)
        for _ in range(sys.getrecursionlimit() + 1):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.fchdir(begun)
        os.close(begun)
    yield top
    remove(top)
