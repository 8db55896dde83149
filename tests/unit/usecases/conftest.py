"""What the tests of use cases share."""

import pytest

from tests.unit.usecases.world import World


@pytest.fixture
def world() -> World:
    """A deployment of the test's own."""
    return World()
