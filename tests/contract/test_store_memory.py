"""The store in memory keeps the contract."""

import pytest

from spotferry.ports.store import BanStore, JobStore, SightingStore
from spotferry.store.memory import MemoryStore
from tests.contract.store_contract import StoreContract
from tests.contract.store_records import Store

_JOB_STORE: type[JobStore] = MemoryStore
_BAN_STORE: type[BanStore] = MemoryStore
_SIGHTING_STORE: type[SightingStore] = MemoryStore


@pytest.fixture
def store() -> Store:
    """A store of its own for each test."""
    return MemoryStore()


class TestMemoryStore(StoreContract):
    """The promises."""
