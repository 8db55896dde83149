"""The digest on its own thread: of all that was handed in, or none."""

import hashlib
import os
import threading

import pytest

from spotferry.agent.digest import Digest

LOT = 512 * 1024
BAD = b"bad"


class Breaking:
    """A hash that takes no bad piece, and takes what it takes only once it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.may.set()
        self.taken: list[bytes] = []

    def update(self, piece: bytes) -> None:
        """The next piece."""
        self.may.wait()
        if piece == BAD:
            raise MemoryError("no room")
        self.taken.append(piece)

    def hexdigest(self) -> str:
        """Of what was taken."""
        return f"of {len(self.taken)}"


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Breaking:
    """The hash of every digest of the test."""
    made = Breaking()
    monkeypatch.setattr(hashlib, "sha256", lambda: made)
    return made


@pytest.mark.parametrize("size", [1, LOT - 1, LOT, 3 * LOT + 1])
def test_it_is_of_all_pieces(size: int) -> None:
    """In order, however they are cut; it can be asked for twice."""
    content, digest = os.urandom(size), Digest()
    for at in range(0, size, 100_000):
        digest.update(memoryview(content)[at : at + 100_000])
    assert digest.hexdigest() == digest.hexdigest() == hashlib.sha256(content).hexdigest()
    digest.close()


@pytest.mark.parametrize("lots_after", [0, 1, 5])
def test_a_piece_that_was_not_hashed_leaves_no_digest(breaking: Breaking, lots_after: int) -> None:
    """Whichever it was, the last as well: an error, and never the digest of the others; also when asked again."""
    digest = Digest()
    digest.update(bytes(LOT))
    digest.update(BAD)
    for _ in range(lots_after):
        digest.update(bytes(LOT))
    for _ in range(2):
        with pytest.raises(MemoryError):
            digest.hexdigest()
    digest.close()
    assert len(breaking.taken) <= 1 + lots_after


def test_whoever_goes_on_hears_of_it(breaking: Breaking) -> None:
    """Before many more pieces are taken."""
    digest = Digest()
    digest.update(BAD)

    def go_on() -> None:
        for _ in range(20):
            digest.update(bytes(LOT))

    with pytest.raises(MemoryError):
        go_on()
    digest.close()
    assert len(breaking.taken) < 20


def test_closing_it_drops_what_waits(breaking: Breaking) -> None:
    """Nobody waits for a digest that nobody wants; twice is fine."""
    digest = Digest()
    breaking.may.clear()
    for _ in range(5):
        digest.update(bytes(LOT))
    closing = threading.Thread(target=digest.close)
    closing.start()
    *_, last = digest._waiting
    with pytest.raises(BaseException):  # noqa: B017, PT011  (that it was cancelled is a BaseException of the library's)
        last.result(timeout=10)
    breaking.may.set()
    closing.join()
    digest.close()
    assert len(breaking.taken) == 1
