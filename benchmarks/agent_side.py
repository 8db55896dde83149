"""The agent's side of a checkpoint in a process of its own, so that its memory is its own: prints one JSON line.

python -m benchmarks.agent_side save TREE [ARCHIVE]    packs, cuts and digests; the bucket takes all at once
python -m benchmarks.agent_side send TREE URL          the same over sockets to a bucket at URL
python -m benchmarks.agent_side restore ARCHIVE TREE   reads, verifies and unpacks
"""

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from spotferry.agent import incoming, uploads
from spotferry.agent.chunks import Chunk
from spotferry.agent.clock import Clock
from spotferry.agent.link import Link
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Part
from spotferry.agent.settings import Places
from spotferry.agent.subject import Fate, Subject, Wanted
from spotferry.agent.task import Runner
from spotferry.agent.uploads import Uploader
from spotferry.agent.workdir import WORKDIR_PART, WorkdirEngine
from spotferry.agent.world import World

_MIB = 1024 * 1024
_CHUNKS = [{"count": 1000, "bytes": 8 * _MIB}, {"count": 9000, "bytes": 32 * _MIB}]


class Broker:
    """As much of a broker as an upload needs; addresses are below `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.committed: dict[str, Any] = {}  # Any: JSON

    def delivered(self, check: Callable[[], None]) -> None:
        """There are no reports."""
        check()

    def call(self, path: str, body: dict[str, Any], check: Callable[[], None]) -> dict[str, Any]:  # Any: JSON
        """Addresses, and the commit."""
        check()
        if path == "uploads/commit":
            self.committed = body
            return {"number": 1}
        first = int(body.get("from_chunk", 0))
        urls = [f"{self._url}/{number}" for number in range(first, first + 64)]
        told = {"first_chunk": first, "urls": urls, "expires_seconds": 3600}
        part = {
            "name": body["parts"][0]["name"] if "parts" in body else "",
            "upload_id": "u",
            "chunks": _CHUNKS,
            **told,
        }
        return {"nonce": "n", "parts": [part], **told}


class _Nobody:
    """A task without processes."""

    def end(self, _grace_seconds: float, _check: Callable[[], None]) -> None:
        """Nobody is left."""


def nothing() -> None:
    """No order."""


def place_of(base: Path, work_dir: Path) -> WorkPlace:
    """A work directory."""
    places = Places(base, privileged=False)
    places.make()
    return WorkPlace(World(places), work_dir, Clock())


def save(tree: Path, url: str) -> dict[str, Any]:  # Any: JSON
    """A checkpoint of the tree by the workdir engine; what was committed."""
    broker = Broker(url)
    with tempfile.TemporaryDirectory() as base:
        engine = WorkdirEngine(place_of(Path(base), tree))
        uploader = Uploader(cast("Link", broker), Clock(), Path(base))
        wanted = Wanted("instance_termination", Fate.LEAVES)
        subject = Subject(cast("Runner", _Nobody()), wanted, Clock(), nothing)
        with uploader.begin("checkpoint", engine.parts, nothing) as outgoing:
            engine.capture(subject, outgoing, nothing)
            outgoing.settle()
            outgoing.commit({}, [])
    (part,) = broker.committed["parts"]
    return {"size_bytes": part["size_bytes"], "sha256": part["sha256"]}


def to_disk(archive: Path | None) -> None:
    """Have the bucket be a file, or nothing at all; digests are made as for a real one."""
    target = archive.open("wb") if archive else None

    def put(_url: str, chunk: Chunk, *_: object) -> str:
        if target is not None:
            os.pwrite(target.fileno(), b"".join(chunk.blocks()), chunk.number * 8 * _MIB)
        return f"{chunk.number}"

    uploads.put_chunk = put


def restore(archive: Path, target: Path) -> dict[str, Any]:  # Any: JSON
    """The archive's tree in the place of a directory."""
    digest = hashlib.sha256()
    with archive.open("rb") as file:
        while block := file.read(_MIB):
            digest.update(block)

    class Answer:
        """What the bucket answers."""

        status = 200
        length = None

        def __init__(self) -> None:
            self._file = archive.open("rb")
            self.read1, self.close = self._file.read1, self._file.close

    incoming.open_url = cast("Any", lambda _request: Answer())  # Any: a stand-in
    began_at = time.monotonic()
    part = Part(WORKDIR_PART, "file:", digest.hexdigest(), archive.stat().st_size)
    with tempfile.TemporaryDirectory(dir=target.parent) as base:
        place_of(Path(base), target).replace_by(part, nothing)
    return {"seconds": time.monotonic() - began_at}


def main() -> None:
    """One measurement."""
    what, first, *more = sys.argv[1:]
    began_at, cpu_at = time.monotonic(), time.process_time()
    if what == "restore":
        said = restore(Path(first), Path(more[0]))
    else:
        if what == "save":
            to_disk(Path(more[0]) if more else None)
        said = save(Path(first), more[0] if what == "send" else "memory:")
    figures = {"seconds": time.monotonic() - began_at, "cpu_seconds": time.process_time() - cpu_at}
    sys.stdout.write(json.dumps({**figures, "rss_mib": _peak_mib(), **said}) + "\n")


def _peak_mib() -> float:
    """The process's own peak; what getrusage says is its parent's, where that was larger when it forked."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    main()
