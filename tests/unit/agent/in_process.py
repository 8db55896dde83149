"""The agent's archives against the real use cases over a bucket in memory, in one process and without sockets."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from spotferry.agent import incoming, uploads
from spotferry.agent.chunks import Chunk
from spotferry.agent.engines import Engine
from spotferry.agent.errors import BrokerRefused
from spotferry.agent.link import Link
from spotferry.agent.paths import PathsEngine
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Options, Part, Saved
from spotferry.agent.saving import Saving
from spotferry.agent.settings import Places
from spotferry.agent.signals import Request
from spotferry.agent.subject import Fate, Subject, Wanted
from spotferry.agent.task import Runner
from spotferry.agent.uploads import Uploader
from spotferry.agent.workdir import WorkdirEngine
from spotferry.agent.world import World as Home
from spotferry.types import Attempt, InvalidInput, StaleAttempt
from spotferry.usecases.archive_calls import Addresses, Commit, MoreAddresses
from tests.unit.agent.clocks import ManualClock
from tests.unit.usecases.world import World, bearer

Json = dict[str, Any]  # Any: JSON bodies
HOUR = timedelta(hours=1)


def nothing() -> None:
    """No order."""


@dataclass
class Wire:
    """What stands for the network between one agent and the broker.

    Attributes:
        world: the broker.
        attempt: whose agent this is.
        sent_bytes: of chunks.
        lost: called before each call, and for each chunk with its length; raises when nothing gets through any more.
    """

    world: World
    attempt: Attempt
    sent_bytes: int = 0
    lost: Callable[[int], None] = lambda _: None
    commits: list[Json] = field(default_factory=list)

    def delivered(self, check: Callable[[], None]) -> None:
        """There are no reports."""
        check()

    def call(self, path: str, body: Json, check: Callable[[], None]) -> Json:
        """One of the calls for archives."""
        check()
        self.lost(0)
        who = self.world.authenticate(bearer(self.attempt))
        archive = self.world.archive
        try:
            if path == "uploads":
                return archive.addresses(who, Addresses.model_validate(body))
            if path == "uploads/addresses":
                return archive.more_addresses(who, MoreAddresses.model_validate(body))
            self.commits.append(body)
            return archive.commit(who, Commit.model_validate(body))
        except (InvalidInput, StaleAttempt) as error:
            raise BrokerRefused(str(error)) from error

    def put(self, url: str, chunk: Chunk, *_: object) -> str:
        """A chunk gets there whole, or not at all."""
        body = b"".join(chunk.blocks())
        self.lost(len(body))
        self.sent_bytes += len(body)
        return self.world.objects.put_chunk(url, body)


class Answer(io.BytesIO):
    """What the bucket answers."""

    status = 200
    length = None


class Agent:
    """The saving side of one machine's agent.

    Args:
        directory: the machine's disk.
        wire: to the broker.
        options: of the job.
        outputs: of the job.
    """

    def __init__(
        self, directory: Path, wire: Wire, options: Options | None = None, outputs: tuple[str, ...] = ()
    ) -> None:
        places = Places(directory, privileged=False)
        places.make()
        self.clock = ManualClock()
        self.wire = wire
        self.options = options or Options()
        home = Home(places)
        self.work = home.work_dir("work")
        self.work.mkdir(exist_ok=True)
        place = WorkPlace(home, self.work, self.clock)
        request = Request(home, places.base, self.clock)
        self.paths = PathsEngine(place, lambda: self.options, lambda: outputs, request, places.spool)
        engines: dict[str, Engine] = {"workdir": WorkdirEngine(place), "paths": self.paths}
        uploader = Uploader(cast("Link", wire), self.clock, places.spool)
        self.saving = Saving(place, engines, {}, uploader, self.clock)

    def checkpoint(self, fate: Fate = Fate.GOES_ON, exit_code: int | None = None) -> int:
        """Make one; its number."""
        wanted = Wanted("job_termination" if exit_code is not None else "heartbeat", fate, exit_code)
        subject = Subject(cast("Runner", _NobodyRuns()), wanted, self.clock, nothing)
        return self.saving.checkpoint(subject, self.options, self.clock.monotonic(), nothing)

    def restore(self) -> tuple[int, str]:
        """Bring the newest back that the broker offers and that verifies."""
        return self.saving.restore(offered(self.wire), nothing, fresh=True)

    def files(self) -> dict[str, bytes]:
        """What is in the work directory."""
        return {str(p.relative_to(self.work)): p.read_bytes() for p in self.work.rglob("*") if p.is_file()}


def offered(wire: Wire) -> tuple[Saved, ...]:
    """The checkpoints that a machine of the job may restore, as its plan has them."""
    said = wire.world.say.start(wire.world.store.load(wire.attempt.job_id))
    return tuple(Saved(c["number"], c["engine"], _parts(c["parts"])) for c in said["checkpoints"])


def _parts(said: list[Json]) -> tuple[Part, ...]:
    return tuple(Part(p["name"], p["url"], p["sha256"], p["size_bytes"]) for p in said)


class _NobodyRuns:
    """A runner of a task without processes."""

    def freeze(self) -> list[int]:
        """Nobody was running."""
        return []

    def thaw(self, pids: list[int]) -> None:
        """Nobody is stopped."""
        assert pids == []

    def end(self, grace_seconds: float, check: Callable[[], None]) -> None:
        """Nobody is left."""
        assert grace_seconds >= 0
        check()


def connect(monkeypatch: pytest.MonkeyPatch, wire: Wire) -> Wire:
    """Have the agent's code use the wire instead of sockets."""

    def open_url(request: Any) -> Answer:  # Any: urllib's request
        return Answer(wire.world.objects.get(request.full_url.split(":", 2)[2].split("?")[0]))

    monkeypatch.setattr(uploads, "put_chunk", wire.put)
    monkeypatch.setattr(incoming, "open_url", open_url)
    return wire
