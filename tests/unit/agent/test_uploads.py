"""Archives on their way: cut into chunks while they are made, sent with retries, committed once all is there."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spotferry.agent.broker import Broker
from spotferry.agent.chunks import MEMORY_CHUNK_BYTES, MEMORY_CHUNKS, Room
from spotferry.agent.errors import Ended, Order, TransferFailed
from spotferry.agent.settings import Settings
from spotferry.agent.transfer import TRIES
from spotferry.agent.uploads import FRESH_ADDRESSES, LISTED_FILES, Outgoing, Uploader
from tests.unit.agent.clocks import ManualClock
from tests.unit.agent.fake_broker import FakeBroker, Json
from tests.unit.agent.test_link import Line
from tests.unit.agent.test_transfer import KEY

CONTENT = os.urandom(1_000_000)
DETAILS = {
    "engine": "workdir",
    "reason": "heartbeat",
    "task_over": False,
    "exit_code": None,
    "machine": {"arch": "", "kernel": "", "cpu_flags": ""},
}


def nothing() -> None:
    """No order."""


@pytest.fixture
def fake() -> Iterator[FakeBroker]:
    """A broker with a bucket."""
    with FakeBroker({"mode": "fresh", "checkpoints": []}, instance_id="i-1", token="t") as made:
        yield made


@pytest.fixture
def begin(fake: FakeBroker, tmp_path: Path) -> Callable[..., Outgoing]:
    """Begins an archive of one part."""
    line = Line(tmp_path)
    line.link._broker = Broker(Settings(fake.url, "i-1", 1, "t", "aws"), KEY, timeout=5)
    uploader = Uploader(line.link, ManualClock(), tmp_path)

    def made(kind: str = "checkpoint", check: Callable[[], None] = nothing) -> Outgoing:
        return uploader.begin(kind, ("part",), check)

    return made


def sent(outgoing: Outgoing, content: bytes = CONTENT, step: int = 50_000, files: list[Json] | None = None) -> Json:
    """Send and commit an archive of one part."""
    with outgoing:
        with outgoing.part("part") as part:
            for at in range(0, len(content), step):
                part.write(content[at : at + step])
        outgoing.settle()
        return outgoing.commit(DETAILS, files or [])


def test_an_archive_is_cut_sent_and_committed(fake: FakeBroker, begin: Callable[..., Outgoing]) -> None:
    """Chunks follow the ladder, addresses are asked for a few at a time, all bytes are there."""
    assert sent(begin())["number"] == 1
    assert fake.problems == []
    (commit,) = fake.commits
    assert commit["contents"] == {"part": CONTENT}
    chunk = fake.bucket.chunk_bytes
    sizes = [len(body) for _, body in sorted(fake.bucket.uploads["u0"].items())]
    assert sizes[:7] == [chunk] * 5 + [2 * chunk] * 2
    asked = [body["from_chunk"] for _, path, body in fake.calls if path == "uploads/addresses"]
    least = -(-len(sizes) // fake.bucket.at_a_time) - 1
    assert len(set(asked)) == len(asked)
    assert least <= len(asked) <= 2 * least


def test_chunks_are_sent_again_from_memory(fake: FakeBroker, begin: Callable[..., Outgoing]) -> None:
    """A bucket that falters costs tries, not bytes."""
    fake.refuse_puts = 5
    assert sent(begin())["number"] == 1
    assert fake.commits[0]["contents"] == {"part": CONTENT}


def test_a_bucket_that_never_takes_a_chunk_is_an_error(fake: FakeBroker, begin: Callable[..., Outgoing]) -> None:
    """Not a wait for ever; nothing is committed."""
    fake.refuse_puts = 10_000
    with pytest.raises(TransferFailed, match="503"):
        sent(begin(), CONTENT[:1000])
    assert (fake.puts_begun, fake.commits) == (TRIES, [])


def test_expired_addresses_are_renewed(fake: FakeBroker, begin: Callable[..., Outgoing]) -> None:
    """An upload outlives the credentials that its first addresses were signed with; no byte is sent twice."""
    with begin() as outgoing:
        with outgoing.part("part") as part:
            part.write(CONTENT[:300_000])
            outgoing.settle()
            fake.bucket.generation += 1
            part.write(CONTENT[300_000:])
        outgoing.settle()
        outgoing.commit(DETAILS, [])
    assert fake.commits[0]["contents"] == {"part": CONTENT}
    assert fake.bucket.received_bytes == len(CONTENT)


def test_addresses_that_are_refused_time_and_again_are_an_error(
    fake: FakeBroker, begin: Callable[..., Outgoing], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upload itself is gone, say."""
    monkeypatch.setattr(fake.bucket, "take", lambda *_: None)
    with pytest.raises(TransferFailed, match="the bucket refused part: HTTP 403"):
        sent(begin(), CONTENT[:1000])
    assert fake.puts_begun == FRESH_ADDRESSES


def test_an_archive_without_end_is_an_error(
    fake: FakeBroker, begin: Callable[..., Outgoing], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ladder has a last step."""
    ladder = fake.bucket.begin

    def short(url: str, names: list[str]) -> Json:
        answer = ladder(url, names)
        answer["parts"][0]["chunks"] = [{"count": 2, "bytes": 1000}]
        return answer

    monkeypatch.setattr(fake.bucket, "begin", short)
    with pytest.raises(TransferFailed, match="too large"):
        sent(begin(), CONTENT[:3000], 500)
    assert fake.commits == []


def test_a_refused_commit_is_an_error(fake: FakeBroker, begin: Callable[..., Outgoing]) -> None:
    """The broker's words are in it."""
    with begin() as outgoing:
        with outgoing.part("part") as part:
            part.write(CONTENT)
        outgoing.settle()
        fake.bucket.uploads["u0"][0] = b"other bytes"
        with pytest.raises(TransferFailed, match="etags"):
            outgoing.commit(DETAILS, [])
    assert fake.commits == []


def test_an_order_ends_an_upload(fake: FakeBroker, begin: Callable[..., Outgoing], tmp_path: Path) -> None:
    """It comes out of the next write or wait; no sender goes on, and no chunk is left on the disk."""
    fake.refuse_puts = 10_000

    def check() -> None:
        if fake.puts_begun:
            raise Ended(Order("stop", ""))

    with pytest.raises(Ended):
        sent(begin("checkpoint", check))
    assert fake.commits == []
    assert list(tmp_path.glob("chunk-*")) == []


@pytest.mark.parametrize(("count", "complete"), [(0, True), (LISTED_FILES, True), (LISTED_FILES + 1, False)])
def test_a_list_that_was_cut_says_so(
    fake: FakeBroker,
    begin: Callable[..., Outgoing],
    count: int,
    complete: bool,  # noqa: FBT001 (a case)
) -> None:
    """A commit lists the first 10,000 files, and whether there are more."""
    files: list[Json] = [{"path": f"{n}", "size_bytes": 0, "sha256": "0" * 64} for n in range(count)]
    fake.reports.append(("task_exited", {}))
    sent(begin("outputs"), b"archive", files=files)
    assert fake.commits[0]["files"] == files[:LISTED_FILES]
    assert fake.commits[0]["files_complete"] is complete
    assert fake.problems == []


def test_a_name_that_is_no_text_is_left_out_of_the_list(fake: FakeBroker, begin: Callable[..., Outgoing]) -> None:
    """A file whose name is not UTF-8 travels unlisted, and the commit says that there are more files than listed."""
    names = ["a", os.fsdecode(b"b\xff"), "\u00e9"]
    files: list[Json] = [{"path": name, "size_bytes": 0, "sha256": "0" * 64} for name in names]
    fake.reports.append(("task_exited", {}))
    sent(begin("outputs"), b"archive", files=files)
    assert [file["path"] for file in fake.commits[0]["files"]] == ["a", "\u00e9"]
    assert fake.commits[0]["files_complete"] is False


def test_memory_holds_a_few_chunks_and_the_disk_the_rest_of_a_hurry(tmp_path: Path) -> None:
    """While a task stands still nobody waits for the network: chunks that memory cannot hold go to the disk."""
    room = Room(tmp_path)
    chunks = [room.chunk(n, 1000, nothing) for n in range(MEMORY_CHUNKS)]

    def full() -> None:
        raise Ended(Order("stop", "there is no room"))

    with pytest.raises(Ended):
        room.chunk(9, 1000, full)
    with room.hurried():
        spilled = room.chunk(9, 1000, full)
        spilled.write(b"x" * 999)
        spilled.close()
        assert b"".join(spilled.blocks()) == b"x" * 999
        assert [path.stat().st_size for path in tmp_path.glob("chunk-*")] == [999]
        spilled.drop()
    assert list(tmp_path.glob("chunk-*")) == []
    chunks[0].drop()
    assert room.chunk(10, 1000, full).path is None


def test_a_long_chunk_goes_through_a_file(tmp_path: Path) -> None:
    """Memory stays bounded however large the archive; two at a time may be on the disk."""
    room, capacity = Room(tmp_path), MEMORY_CHUNK_BYTES + 1
    chunks = [room.chunk(n, capacity, nothing) for n in range(2)]
    assert all(chunk.path is not None for chunk in chunks)

    def full() -> None:
        raise Ended(Order("stop", "there is no room"))

    with pytest.raises(Ended):
        room.chunk(2, capacity, full)
    chunks[0].drop()
    for chunk in (chunks[1], room.chunk(2, capacity, full)):
        chunk.drop()
    assert list(tmp_path.iterdir()) == []


def test_what_a_chunk_does_not_hold_is_given_back(tmp_path: Path) -> None:
    """The rest begins the next one."""
    chunk = Room(tmp_path).chunk(0, 10, nothing)
    assert bytes(chunk.write(b"0123456789abc")) == b"abc"
    assert b"".join(chunk.blocks()) == b"0123456789"
