"""The streams of members: made and read on threads, in order, and refused where they are damaged."""

import gzip
import io
import os
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotferry.agent import zstd
from spotferry.agent.codec import BLOCK_BYTES, GZIP, LONGEST_MEMBER_BYTES, ZSTD, Bytes, Codec, Pieces, fastest
from spotferry.agent.errors import ArchiveInvalid, Ended, Order
from spotferry.agent.members import Zipper, unzip

MIXED = os.urandom(2 * BLOCK_BYTES) + b"text " * 200_000 + bytes(BLOCK_BYTES + 1)


def nothing() -> None:
    """No order."""


BOTH = pytest.mark.parametrize("codec", [GZIP, ZSTD], ids=["gzip", "zstd"])


def zipped(codec: Codec, *writes: bytes) -> bytes:
    """What comes of these writes."""
    out = bytearray()
    with Zipper(out.extend, nothing, codec) as stream:
        for data in writes:
            stream.write(data)
    return bytes(out)


@BOTH
@pytest.mark.parametrize("size", [1, 511, 4096, BLOCK_BYTES - 1, BLOCK_BYTES, 3 * BLOCK_BYTES])
def test_what_is_written_comes_back_in_order(codec: Codec, size: int) -> None:
    """Whatever the size of the writes."""
    count = min(len(MIXED), 400 * size)
    content = zipped(codec, *(MIXED[at : at + size] for at in range(0, count, size)))
    with unzip(io.BytesIO(content)) as plain:
        assert plain.read() == MIXED[: -(-count // size) * size]


def test_any_tool_reads_either(tmp_path: Path) -> None:
    """Python's own gzip, and the zstd command where there is one."""
    assert gzip.decompress(zipped(GZIP, MIXED)) == MIXED
    command = shutil.which("zstd")
    if command is None:
        pytest.skip("there is no zstd command here")
    (tmp_path / "a.zst").write_bytes(zipped(ZSTD, MIXED))
    assert subprocess.run([command, "-dc", tmp_path / "a.zst"], capture_output=True, check=True).stdout == MIXED


def test_a_system_without_the_library_uses_gzip(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another machine made with it is refused with what to do about it."""
    assert fastest() is ZSTD
    content = zipped(ZSTD, MIXED)
    monkeypatch.setattr(zstd, "library", lambda: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert fastest() is GZIP
    with unzip(io.BytesIO(content)) as plain, pytest.raises(ArchiveInvalid, match="install it in setup"):
        plain.read()


def test_a_missing_library_is_installed_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first package manager that the system has; as root only."""
    monkeypatch.setattr(zstd, "_LIBRARY", "libnothing.so.1")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        if len(asked) == 1:
            raise FileNotFoundError(command[0])
        monkeypatch.setattr(zstd, "_LIBRARY", "libzstd.so.1")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    zstd.library.cache_clear()
    assert zstd.needed().expand(zstd.needed().compress(b"abc"), 10) == b"abc"
    assert [command[0] for command in asked] == ["apt-get", "dnf"]
    zstd.library.cache_clear()


def test_a_stream_of_one_member_is_read_too() -> None:
    """As other tools make it."""
    with unzip(io.BytesIO(gzip.compress(MIXED))) as plain:
        assert plain.read() == MIXED


@pytest.mark.parametrize("size", [7, 100_000])
@pytest.mark.parametrize("archive", [gzip.compress(MIXED), zipped(GZIP, MIXED), zipped(ZSTD, MIXED)])
def test_a_stream_may_come_in_views_of_any_length(archive: bytes, size: int) -> None:
    """As a download gives it: what has come of it, and no copies."""
    at = 0

    class Download:
        """Gives so much at a time."""

        def read(self, wanted: int = -1) -> memoryview:
            """The next bytes."""
            nonlocal at
            given = memoryview(archive)[at : at + (size if wanted < 0 else min(size, wanted))]
            at += len(given)
            return given

    with unzip(Download()) as plain:
        assert b"".join(iter(lambda: bytes(plain.read(300_000)), b"")) == MIXED


def test_what_does_not_shrink_is_stored() -> None:
    """Random bytes grow by a trifle; text shrinks."""
    noise, text = os.urandom(BLOCK_BYTES), (b"all work and no play " * 60_000)[:BLOCK_BYTES]
    for codec in (GZIP, ZSTD):
        assert 0 < len(zipped(codec, noise)) - BLOCK_BYTES < 200
        assert len(zipped(codec, text)) < BLOCK_BYTES / 50


@pytest.mark.parametrize("size", [20_000, 128 * 1024, 128 * 1024 + 1, BLOCK_BYTES])
def test_a_stored_block_is_neither_copied_nor_given_to_a_thread(size: int) -> None:
    """Its pieces are views of it, on the way out and on the way in."""
    noise = os.urandom(size)
    head, *frame = ZSTD.stored(noise) or ()
    assert ZSTD.length(bytes(head)) == sum(map(len, frame))
    assert [piece.obj for piece in frame if isinstance(piece, memoryview)] == [noise] * -(-size // (128 * 1024))
    body = b"".join(frame)
    shown = ZSTD.shown(body) or ()
    assert b"".join(shown) == noise == ZSTD.expand(body)
    assert all(isinstance(piece, memoryview) and piece.obj is body for piece in shown)


@given(at=st.integers(0, 300_000), bit=st.integers(0, 7), cut=st.integers(0, 300_000))
def test_a_stored_block_that_is_damaged_is_left_to_the_library(at: int, bit: int, cut: int) -> None:
    """What is shown of a damaged one is as long as its head says; nothing is read beyond its end."""
    noise = random.Random(at).randbytes(150_000)  # noqa: S311  (a seed)
    _, *frame = ZSTD.stored(noise) or ()
    damaged = bytearray(b"".join(frame))
    damaged[at % min(len(damaged), 20 if bit else len(damaged))] ^= 1 << bit
    for body in (bytes(damaged), bytes(damaged[: cut % len(damaged)])):
        shown = ZSTD.shown(body)
        assert shown is None or sum(map(len, shown)) == int.from_bytes(body[5:9], "little")


def test_small_files_shrink_together() -> None:
    """What is written in small pieces is put together to whole blocks: what is like the piece before costs little."""
    page = random.Random(7).randbytes(25_000).hex().encode()  # noqa: S311  (a seed)
    for size in (len(page), 7 * len(page), 2 * BLOCK_BYTES + 1):
        piece = (page * 50)[:size]
        alone, together = len(zipped(ZSTD, page)), zipped(ZSTD, *[piece] * 10)
        assert len(together) < (1 + 10 * size / BLOCK_BYTES) * 1.5 * alone
        with unzip(io.BytesIO(together)) as plain:
            assert plain.read() == piece * 10


def test_whole_blocks_are_not_copied() -> None:
    """However many come in one write, also after something small; what is left of it waits for more."""
    seen: list[Bytes] = []

    def stored(block: Bytes) -> Pieces | None:
        seen.append(block)
        return ZSTD.stored(block)

    noise = os.urandom(3 * BLOCK_BYTES + 5)
    content = zipped(replace(ZSTD, stored=stored), b"head", noise, b"tail", noise[:BLOCK_BYTES])
    assert [len(block) for block in seen] == [4, *[BLOCK_BYTES] * 3, 9, BLOCK_BYTES]
    assert all(isinstance(block, memoryview) and block.obj is noise for block in seen[1:4])
    with unzip(io.BytesIO(content)) as plain:
        assert plain.read() == b"head" + noise + b"tail" + noise[:BLOCK_BYTES]


@BOTH
def test_no_member_is_longer_than_a_reader_accepts(codec: Codec) -> None:
    """As the protocol states it: whatever is in a block."""
    for block in (os.urandom(BLOCK_BYTES), bytes(BLOCK_BYTES), MIXED[-BLOCK_BYTES:]):
        for member in (codec.pack(block), codec.stored(block) or ()):
            assert sum(map(len, member[1:])) <= LONGEST_MEMBER_BYTES == 1_114_112


def test_a_damaged_stream_is_refused() -> None:
    """A byte that changed anywhere, or an end that is missing, is found; seeded, so that a failure repeats."""
    content = zipped(GZIP, MIXED[: 3 * BLOCK_BYTES])
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


def test_a_damaged_frame_is_no_crash() -> None:
    """The digest of the whole tells what zstd itself does not; no damage brings more bytes than a block has."""
    content = zipped(ZSTD, MIXED[: 3 * BLOCK_BYTES])
    chance = random.Random(6)  # noqa: S311  (a seed)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[chance.randrange(12, len(content))] ^= 1 << chance.randrange(8)
        with unzip(io.BytesIO(bytes(damaged))) as plain:
            try:
                assert len(plain.read()) <= 3 * BLOCK_BYTES
            except ArchiveInvalid:
                continue


@BOTH
def test_an_order_throws_the_rest_away(codec: Codec) -> None:
    """The block raises what the check raised, and nothing more is handed on."""
    out = bytearray()

    def check() -> None:
        raise Ended(Order("stop", ""))

    with pytest.raises(Ended), Zipper(out.extend, check, codec) as stream:
        stream.write(MIXED)
    assert out == b""
