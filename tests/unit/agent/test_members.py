"""The gzip stream of members: made and read on threads, in order, and refused where it is damaged."""

import gzip
import io
import os
import random

import pytest

from spotferry.agent.errors import ArchiveInvalid, Ended, Order
from spotferry.agent.members import BLOCK_BYTES, Zipper, member, unzip

MIXED = os.urandom(2 * BLOCK_BYTES) + b"text " * 200_000 + bytes(BLOCK_BYTES + 1)


def nothing() -> None:
    """No order."""


def zipped(*writes: bytes) -> bytes:
    """What comes of these writes."""
    out = bytearray()
    with Zipper(out.extend, nothing) as stream:
        for data in writes:
            stream.write(data)
    return bytes(out)


@pytest.mark.parametrize("size", [1, 511, 4096, BLOCK_BYTES - 1, BLOCK_BYTES, 3 * BLOCK_BYTES])
def test_what_is_written_comes_back_in_order(size: int) -> None:
    """Whatever the size of the writes; Python's own gzip reads the same."""
    count = min(len(MIXED), 400 * size)
    content = zipped(*(MIXED[at : at + size] for at in range(0, count, size)))
    with unzip(io.BytesIO(content)) as plain:
        assert plain.read() == gzip.decompress(content) == MIXED[: -(-count // size) * size]


def test_a_stream_of_one_member_is_read_too() -> None:
    """As other tools make it."""
    with unzip(io.BytesIO(gzip.compress(MIXED))) as plain:
        assert plain.read() == MIXED


def test_what_does_not_shrink_is_stored() -> None:
    """Random bytes grow by a trifle; text shrinks."""
    noise = os.urandom(BLOCK_BYTES)
    assert 0 < sum(map(len, member(noise))) - BLOCK_BYTES < 200
    assert sum(map(len, member((b"all work and no play " * 30_000)[:BLOCK_BYTES]))) < BLOCK_BYTES / 50


def test_a_damaged_stream_is_refused() -> None:
    """A byte that changed anywhere, or an end that is missing, is found; seeded, so that a failure repeats."""
    content = zipped(MIXED[: 3 * BLOCK_BYTES])
    chance = random.Random(5)  # noqa: S311  (a seed)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[chance.randrange(12, len(content))] ^= 1 << chance.randrange(8)
        cut = content[: chance.randrange(40, len(content))]
        for broken in (bytes(damaged), cut):
            with unzip(io.BytesIO(broken)) as plain:
                try:
                    got = plain.read()
                except (ArchiveInvalid, EOFError, OSError):
                    continue
            assert broken is cut or got == MIXED[: 3 * BLOCK_BYTES]  # a bit of a header that says nothing
            assert broken is not cut or len(got) % BLOCK_BYTES == 0  # an end between two members: the tar tells


def test_an_order_throws_the_rest_away() -> None:
    """The block raises what the check raised, and nothing more is handed on."""
    out = bytearray()

    def check() -> None:
        raise Ended(Order("stop", ""))

    with pytest.raises(Ended), Zipper(out.extend, check) as stream:
        stream.write(MIXED)
    assert out == b""
