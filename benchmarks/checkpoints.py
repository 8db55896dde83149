"""Checkpoints: how fast beside `tar | zstd`, how much memory, and what a second one sends."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.report import Measurement
from tests.unit.agent.in_process import Agent, Wire, connect
from tests.unit.usecases.world import World

TREE_BYTES = int(os.environ.get("SPOTFERRY_BENCH_TREE_BYTES", "2147483648"))
RUNS = 3
_MIB = 1024 * 1024
_SLOWDOWN = 1.25
"""At least 0.8 of the throughput is at most so many times the time."""

_MEMORY_MIB = 100
_SECOND = 0.05
_FILES = 400
_TEXT_WORDS = 3_000_000
_RESERVED = 4
_TIMEOUT_SECONDS = 600


def measure() -> Iterator[Measurement]:
    """All of it, in a directory that is deleted; about four times the tree's size is needed on the disk."""
    with tempfile.TemporaryDirectory(prefix="spotferry-bench-") as name:
        directory = Path(name)
        if shutil.disk_usage(directory).free < _RESERVED * TREE_BYTES:
            print(f"checkpoints are not measured: {directory} has too little room", file=sys.stderr)
            return
        tree = directory / "tree"
        yield Measurement("checkpoint", "tree", make_tree(tree) / _MIB, "MiB")
        yield from _speed(directory, tree)
        with _bucket() as url:
            sent = _agent("send", str(tree), url)
        yield Measurement("checkpoint", "memory of the agent, at its peak", sent["rss_mib"], "MiB", _MEMORY_MIB)
        yield Measurement("checkpoint", "to a bucket on this machine", TREE_BYTES / _MIB / sent["seconds"], "MiB/s")
    yield from _second()


def make_tree(tree: Path) -> int:
    """Most of it weights that do not shrink, the rest text that does, in files large and small; its size.

    The text repeats itself only after more bytes than the window of `zstd -3` holds.
    """
    chance, tree_bytes = random.Random(3), 0  # noqa: S311  (made-up data)
    words = [chance.randbytes(4).hex() for _ in range(5000)]
    text = " ".join(chance.choices(words, k=_TEXT_WORDS)).encode()
    (tree / "text").mkdir(parents=True)
    at, size = 0, TREE_BYTES // 5 // _FILES
    for number in range(_FILES):
        tree_bytes += (tree / "text" / f"{number}.txt").write_bytes(text[at : at + size])
        at = at + size if at + 2 * size <= len(text) else 0
    with (tree / "weights.bin").open("wb") as file:
        for _ in range(TREE_BYTES * 4 // 5 // _MIB):
            tree_bytes += file.write(chance.randbytes(_MIB))
    return tree_bytes


def _speed(directory: Path, tree: Path) -> Iterator[Measurement]:
    archive, back = directory / "archive.tar.gz", directory / "back"
    save = min(float(_agent("save", str(tree))["seconds"]) for _ in range(RUNS))
    _agent("save", str(tree), str(archive))
    restore = min(_restored(archive, back) for _ in range(RUNS))
    archive_bytes = archive.stat().st_size
    archive.unlink()
    shutil.rmtree(back)
    yield Measurement("checkpoint", "throughput, network aside", TREE_BYTES / _MIB / save, "MiB/s")
    yield Measurement("restore", "throughput, network aside", TREE_BYTES / _MIB / restore, "MiB/s")
    if shutil.which("zstd") is None:
        print("there is no zstd to compare with: apt-get install zstd", file=sys.stderr)
        return
    packed = directory / "archive.tar.zst"
    zipping = min(_timed(f"tar -cf - -C '{tree}' . | zstd -q -3 -T1 -c > /dev/null") for _ in range(RUNS))
    _timed(f"tar -cf - -C '{tree}' . | zstd -q -3 -T1 -c > '{packed}'")
    emptied, unpacked = f"rm -rf '{back}' && mkdir '{back}'", f"zstd -qdc '{packed}' | tar -xf - -C '{back}'"
    unzipping = min(_timed(emptied, unpacked) for _ in range(RUNS))
    yield Measurement("tar | zstd -3 -T1", "throughput", TREE_BYTES / _MIB / zipping, "MiB/s")
    yield Measurement("zstd -d | tar", "throughput", TREE_BYTES / _MIB / unzipping, "MiB/s")
    yield Measurement("checkpoint", "bytes, in those of tar | zstd", archive_bytes / packed.stat().st_size, "")
    yield Measurement("checkpoint", "time, in times of tar | zstd's", save / zipping, "", _SLOWDOWN)
    yield Measurement("restore", "time, in times of zstd -d | tar's", restore / unzipping, "", _SLOWDOWN)


def _restored(archive: Path, target: Path) -> float:
    """Seconds that a restore to where nothing is took."""
    shutil.rmtree(target, ignore_errors=True)
    return float(_agent("restore", str(archive), str(target))["seconds"])


def _timed(*commands: str) -> float:
    """Seconds that the last command took."""
    began_at = time.monotonic()
    for command in commands:
        began_at = time.monotonic()
        subprocess.run(["/bin/bash", "-c", command], check=True, timeout=_TIMEOUT_SECONDS)  # noqa: S603  (our own words)
    return time.monotonic() - began_at


def _agent(*arguments: str) -> dict[str, float]:
    """What the agent's side says."""
    command = [sys.executable, "-m", "benchmarks.agent_side", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_SECONDS)  # noqa: S603  (as above)
    said: dict[str, float] = json.loads(done.stdout)
    return said


@contextmanager
def _bucket() -> Iterator[str]:
    """A bucket that takes chunks and forgets them."""

    class Handler(BaseHTTPRequestHandler):
        """PUT only."""

        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Quiet."""

        def do_PUT(self) -> None:
            """A chunk."""
            left, digest = int(self.headers["Content-Length"]), hashlib.md5(usedforsecurity=False)
            while left > 0:
                block = self.rfile.read(min(left, _MIB))
                digest.update(block)
                left -= len(block)
            self.send_response(200)
            self.send_header("ETag", f'"{digest.hexdigest()}"')
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _second() -> Iterator[Measurement]:
    """What a second checkpoint of the paths engine sends when a hundredth of the state changed."""
    with tempfile.TemporaryDirectory(prefix="spotferry-bench-") as name, pytest.MonkeyPatch.context() as patch:
        world = World()
        _, attempt = world.running()
        wire = connect(patch, Wire(world, attempt))
        sent = _twice(Agent(Path(name), wire), lambda: wire.sent_bytes)
    yield Measurement("second checkpoint, 1 % changed", "bytes, in those of the first", sent, "", _SECOND)


def _twice(agent: Agent, sent_bytes: Callable[[], int]) -> float:
    chance = random.Random(4)  # noqa: S311  (made-up data)
    agent.options = type(agent.options)(paths=("state",))
    state = agent.work / "state"
    state.mkdir()
    for number in range(100):
        (state / str(number)).write_bytes(chance.randbytes(_MIB))
    (state / "large").write_bytes(chance.randbytes(100 * _MIB))
    agent.checkpoint()
    first = sent_bytes()
    (state / "7").write_bytes(chance.randbytes(_MIB))
    with (state / "large").open("r+b") as file:
        file.seek(50 * _MIB + 12345)
        file.write(chance.randbytes(_MIB))
    agent.checkpoint()
    return (sent_bytes() - first) / first
