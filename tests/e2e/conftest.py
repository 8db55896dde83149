"""The local cloud, as the end-to-end tests use it."""

from collections.abc import Iterator

import pytest

from local.stack import Options, Stack, running


@pytest.fixture(scope="session")
def local_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One local cloud for all tests of a session, which keep their jobs apart; nothing of it is left afterwards."""
    with running(tmp_path_factory.mktemp("cloud"), Options(tied=True)) as stack:
        yield stack
