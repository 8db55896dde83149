"""Fixtures that several rooms of tests share."""

import sys
from collections.abc import Iterator

import pytest

from local.services import Service, clean_environment, free_port


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
