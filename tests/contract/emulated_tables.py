"""The store's tables in the emulator, for tests over the wire."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pynamodb.models import Model

from spotferry.domain.view import Policy
from spotferry.store.dynamo import DynamoStore
from spotferry.store.models import TableNames, Tables, bind
from tests.contract.store_records import World

REGION = "us-east-1"
ROOT = Path(__file__).resolve().parents[2]
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
POLICY = Policy(boot_attempts=7)
END_SECONDS = 10
_numbers = itertools.count(1)


@contextmanager
def emulator(state_dir: Path) -> Iterator[str]:
    """The emulator's address while the context lasts; its process ends with it."""
    with (state_dir / "emulator.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "local.emulator", "--port", "0", "--state-dir", str(state_dir)],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env={**os.environ, **CREDENTIALS, "LOG_LEVEL": "ERROR"},
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (state_dir / "emulator.log").read_text(errors="replace")
            yield f"http://127.0.0.1:{json.loads(line)['port']}"
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def create_tables(host: str, prefix: str = "") -> TableNames:
    """A new set of tables, as the models describe them; processes that share an emulator need prefixes of their own."""
    number = next(_numbers)
    names = TableNames(
        *(f"{prefix}{table}-{number}" for table in ("jobs", "instances", "checkpoints", "timeline", "bans"))
    )
    for model in models_of(bind(names, REGION, host)):
        model.create_table(wait=True, billing_mode="PAY_PER_REQUEST")
    return names


def models_of(tables: Tables) -> tuple[type[Model], ...]:
    """The models of a store."""
    return tables.jobs, tables.instances, tables.checkpoints, tables.timeline, tables.bans


class EmulatedStore:
    """A test class over an emulator, tables and a store of its own; its tests work on records of their own."""

    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        """The emulator's address."""
        with pytest.MonkeyPatch.context() as patch, emulator(tmp_path_factory.mktemp("emulator")) as address:
            for name, value in CREDENTIALS.items():
                patch.setenv(name, value)
            yield address

    @pytest.fixture(scope="class")
    @classmethod
    def tables(cls, host: str) -> TableNames:
        """The names of the tables."""
        return create_tables(host)

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, host: str, tables: TableNames) -> DynamoStore:
        """The store, as one process has it."""
        return DynamoStore(tables, POLICY, host=host, region=REGION)

    @pytest.fixture
    def world(self) -> World:
        """Names that only this test uses."""
        return World()
