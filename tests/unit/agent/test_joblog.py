"""The log in pieces."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotferry.agent.joblog import JobLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file."""
    return tmp_path / "job.log"


def append(path: Path, content: bytes) -> None:
    """Print something."""
    with path.open("ab") as file:
        file.write(content)


def shipped(log: JobLog) -> str:
    """All that comes when every piece is acknowledged; each must begin where the last ended."""
    text, offset = "", 0
    while chunk := log.chunk():
        assert chunk.offset == offset
        text += chunk.text
        offset += len(chunk.text.encode())
        assert chunk.end == offset
        assert log.acknowledge(offset, chunk)
    return text


def test_nothing_printed_is_no_chunk(path: Path) -> None:
    """An empty log, or one that was acknowledged whole, has no chunk."""
    log = JobLog(path)
    assert log.chunk() is None
    append(path, b"x")
    assert shipped(log) == "x"
    assert log.chunk() is None


def test_half_a_letter_waits_for_its_rest(path: Path) -> None:
    """A code point is never split; the end of a complete log is not waited for."""
    log = JobLog(path)
    append(path, "aä".encode()[:2])
    assert shipped(log) == "a"
    append(path, "ä".encode()[1:] + b"\xf0\x9f")
    assert shipped_from(log, 1) == "ä"
    log.complete(complete=True)
    assert shipped_from(log, 3) == "\ufffd"


def shipped_from(log: JobLog, offset: int) -> str:
    """The next piece, which begins there."""
    chunk = log.chunk()
    assert chunk is not None
    assert chunk.offset == offset
    log.acknowledge(chunk.end, chunk)
    return chunk.text


def test_unacknowledged_piece_comes_again(path: Path) -> None:
    """A call that got no answer is repeated with the same offset."""
    log = JobLog(path)
    append(path, b"abc")
    assert log.chunk() == log.chunk()
    assert not log.acknowledge(0, log.chunk())
    assert shipped(log) == "abc"


def test_broker_that_lost_some_gets_it_again(path: Path) -> None:
    """An offset before or between the pieces makes the next piece begin there."""
    log = JobLog(path, chunk_bytes=12)
    append(path, b"0123456789abcdefghij")
    first = log.chunk()
    log.acknowledge(12, first)
    assert not log.acknowledge(5, None)
    assert shipped_from(log, 5) == "56789ab"
    assert shipped_from(log, 12) == "cdefghij"


def test_broker_that_has_more_skips_ahead(path: Path) -> None:
    """An answer that was lost: the broker has the piece already, and the next one follows it."""
    log = JobLog(path, chunk_bytes=12)
    append(path, b"0123456789abcdefghij")
    log.acknowledge(14, None)
    assert shipped_from(log, 14) == "efghij"


def test_more_waits_behind_a_full_piece(path: Path) -> None:
    """The link goes on at once when a piece is not all."""
    log = JobLog(path, chunk_bytes=12)
    append(path, b"x" * 13)
    chunk = log.chunk()
    assert chunk is not None
    assert len(chunk.text) == 12
    assert log.more_after(chunk)
    log.acknowledge(12, chunk)
    assert not log.more_after(log.chunk())


@given(st.lists(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode)), max_size=6))
def test_any_bytes_arrive_as_python_would_replace_them(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    """Whatever is printed, in whatever portions: the text is that of the whole, with replacement, in small pieces."""
    path = tmp_path_factory.mktemp("log") / "job.log"
    log = JobLog(path, chunk_bytes=12)
    log.complete(complete=True)
    append(path, b"".join(pieces))
    assert shipped(log) == b"".join(pieces).decode(errors="replace")
