"""Objects of the bucket as they come, over real sockets."""

import os
from collections.abc import Iterator
from http.client import HTTPResponse
from types import SimpleNamespace
from typing import cast

import pytest

from spotferry.agent import transfer
from spotferry.agent.errors import AddressExpired, Ended, Order, TransferFailed
from spotferry.agent.incoming import Incoming
from spotferry.agent.plan import Part
from spotferry.agent.transfer import TRIES
from tests.unit.agent.clocks import ManualClock
from tests.unit.agent.fake_broker import FakeBroker

CONTENT = os.urandom(1_500_000)


@pytest.fixture
def fake() -> Iterator[FakeBroker]:
    """A broker with a bucket."""
    with FakeBroker({"mode": "fresh"}, instance_id="i-1", token="t") as made:
        yield made


def nothing() -> None:
    """No order."""


def incoming(fake: FakeBroker, **promised: object) -> Incoming:
    """The content, with other promises where they are given."""
    part = {"name": "o", **fake.store(CONTENT), **promised}
    return Incoming(Part(part["name"], part["url"], part["sha256"], part["size_bytes"]), ManualClock(), nothing)


def all_of(reading: Incoming) -> bytes:
    """All that comes, verified."""
    with reading:
        content = b"".join(iter(lambda: reading.read(70_000), b""))
        reading.verify()
    return content


def test_an_object_comes_whole_and_is_verified(fake: FakeBroker) -> None:
    """Also where nobody read to its end before asking for the verdict."""
    assert all_of(incoming(fake)) == CONTENT
    with incoming(fake) as reading:
        assert CONTENT.startswith(reading.read(10))
        reading.verify()


def test_a_broken_connection_is_taken_up_where_it_broke(fake: FakeBroker) -> None:
    """The bytes that came are not fetched again, and none is missing."""
    fake.cut_gets, fake.cut_get_after = 3, 400_000
    assert all_of(incoming(fake)) == CONTENT
    assert fake.cut_gets == 0


def test_whatever_came_before_each_break_counts(fake: FakeBroker) -> None:
    """A line that breaks more often than is tried, and within each block, brings all of it in the end."""
    fake.cut_gets, fake.cut_get_after = 2 * TRIES, 80_000
    assert all_of(incoming(fake)) == CONTENT
    assert fake.cut_gets == 0


class Line:
    """What a slow or bad line gives.

    Attributes:
        length: what is said to be left.
        now: goes on by `seconds` with each piece.
    """

    def __init__(self, *pieces: bytes, seconds: float = 0.0, breaks: bool = False) -> None:
        self._pieces = list(pieces)
        self._seconds = seconds
        self._breaks = breaks
        self.length: int | None = sum(map(len, pieces))
        self.now = 0.0

    def read1(self, size: int) -> bytes:
        """A piece, uncounted as some Pythons have it."""
        self.now += self._seconds
        if not self._pieces and self._breaks:
            raise ConnectionResetError("reset")
        piece = self._pieces.pop(0) if self._pieces else b""
        assert len(piece) <= size
        return piece

    def block(self, monkeypatch: pytest.MonkeyPatch) -> bytes:
        """The next block of it."""
        monkeypatch.setattr(transfer, "time", SimpleNamespace(monotonic=lambda: self.now))
        return transfer.read_block(cast("HTTPResponse", self))


def test_a_fast_line_fills_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the pieces are in which it comes: what follows has fewer to look at."""
    piece = bytes(transfer.READ_BYTES // 64)
    line = Line(*[piece] * 70)
    assert [len(line.block(monkeypatch)) for _ in range(3)] == [transfer.READ_BYTES, 6 * len(piece), 0]
    assert line.length == 0


def test_a_slow_line_is_heard_of_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives the transfer up is heard after each block, and none takes longer than a fraction of a second."""
    line = Line(*[b"x" * 1000] * 100, seconds=0.05)
    blocks = list(iter(lambda: line.block(monkeypatch), b""))
    assert b"".join(blocks) == b"x" * 100_000
    assert max(map(len, blocks)) < 10_000


def test_what_came_before_a_reset_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reset is told after it, so that the next try begins where it happened."""
    line = Line(b"ab", b"c", breaks=True)
    assert line.block(monkeypatch) == b"abc"
    with pytest.raises(TransferFailed, match="reset"):
        line.block(monkeypatch)


def test_an_object_that_never_goes_on_is_given_up(fake: FakeBroker) -> None:
    """An error after so many tries without a byte, not a wait for ever."""
    fake.cut_gets, fake.cut_get_after = 1000, 0
    with pytest.raises(TransferFailed):
        all_of(incoming(fake))
    assert fake.cut_gets == 1000 - TRIES


@pytest.mark.parametrize(
    "promised",
    [{"sha256": "0" * 64}, {"size_bytes": len(CONTENT) - 1}, {"size_bytes": len(CONTENT) + 1}],
    ids=["another digest", "more came", "less came"],
)
def test_what_is_not_as_promised_is_refused(fake: FakeBroker, promised: dict[str, object]) -> None:
    """Size and digest decide, whatever the transfer said."""
    with pytest.raises(TransferFailed, match=r"promised|bytes came"):
        all_of(incoming(fake, **promised))


def test_an_address_that_is_no_longer_good_is_told_apart(fake: FakeBroker) -> None:
    """A fresh one helps there, another try does not."""
    with pytest.raises(AddressExpired, match="404"):
        all_of(incoming(fake, url=f"{fake.url}/bucket/none"))
    with pytest.raises(TransferFailed):
        all_of(incoming(fake, url="http://127.0.0.1:1/o"))


def test_an_order_ends_a_transfer(fake: FakeBroker) -> None:
    """At the next block."""
    stored = fake.store(CONTENT)

    def check() -> None:
        raise Ended(Order("stop", ""))

    part = Part("o", stored["url"], stored["sha256"], len(CONTENT))
    with Incoming(part, ManualClock(), check) as reading, pytest.raises(Ended):
        reading.read(1)
