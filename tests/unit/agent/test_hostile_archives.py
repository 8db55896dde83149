"""Archives that somebody made to do harm, or that a broken tool made, are refused by one error."""

import io
import json
import random
import struct
import tarfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spotferry.agent import codec, zstd
from spotferry.agent.errors import ArchiveInvalid
from spotferry.agent.members import Zipper
from spotferry.agent.pieces import Entry
from spotferry.agent.plan import Options
from spotferry.agent.unpack import unpack
from tests.unit.agent.in_process import Agent, Wire, connect
from tests.unit.usecases.world import World

END = bytes(1024)
SPARSE = [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.realsize", b"100")]


def padded(content: bytes) -> bytes:
    """In whole blocks of a tar."""
    return content + bytes(-len(content) % 512)


def header(name: str, kind: bytes = b"0", size: int = 0, link: str = "") -> bytes:
    """One header."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.linkname = kind, size, link
    return entry.tobuf(tarfile.GNU_FORMAT)


def attributes(*said: tuple[bytes, bytes]) -> bytes:
    """A PAX header; the values are as hostile as they like."""
    records = b""
    for key, value in said:
        record = b" " + key + b"=" + value + b"\n"
        length = next(n for n in range(len(record), len(record) + 9) if len(str(n)) + len(record) == n)
        records += str(length).encode() + record
    return header("pax", b"x", len(records)) + padded(records)


def changed(field: slice, value: bytes) -> bytes:
    """A header with a field that no library writes."""
    block = bytearray(header("f", size=1))
    block[field] = value
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
    return bytes(block) + padded(b"x")


FILE = header("f", size=1) + padded(b"x")
NAME = header("././@LongLink", b"L", 2) + padded(b"a\0")
HOSTILE: dict[str, list[bytes]] = {
    "time nan": [attributes((b"mtime", b"nan")), FILE],
    "time inf": [attributes((b"mtime", b"inf")), FILE],
    "time 1e300": [attributes((b"mtime", b"1e300")), FILE],
    "time of a directory": [attributes((b"mtime", b"nan")), header("d", b"5")],
    "time of 88 bits": [changed(slice(136, 148), b"\x80\x7f" + b"\xff" * 10)],
    "NUL in a name": [attributes((b"path", b"a\0b")), FILE],
    "NUL in a link": [attributes((b"linkpath", b"a\0b")), header("l", b"2", link="x")],
    "size of 4,000 digits": [attributes((b"size", b"9" * 4000)), FILE],
    "size below 0": [attributes((b"size", b"-512")), FILE],
    "size below 0 in the header": [changed(slice(124, 136), b"\x80" + b"\xff" * 11)],
    "names of names": [NAME * 3000, FILE],
    "attributes of attributes": [attributes((b"comment", b"x")) * 3000, FILE],
    "holes that are no numbers": [attributes(*SPARSE), header("f", size=6) + padded(b"7\nabc\n")],
    "holes that end": [attributes(*SPARSE), header("f", size=512)],
    "holes that overlap": [
        attributes(*SPARSE),
        header("f", size=600) + padded(b"2\n0\n50\n40\n10\n") + padded(b"x" * 60),
    ],
    "holes beyond the end": [attributes(*SPARSE), header("f", size=612) + padded(b"1\n90\n100\n") + padded(b"x" * 100)],
    "holes in letters": [attributes((b"GNU.sparse.map", b"x,y"), (b"GNU.sparse.size", b"1")), FILE],
}


def stream(parts: Iterable[bytes], how: codec.Codec = codec.GZIP) -> io.BytesIO:
    """An archive of these bytes."""
    out = bytearray()
    with Zipper(out.extend, lambda: None, how) as zipped:
        for part in parts:
            zipped.write(part)
    return io.BytesIO(out)


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path: Path, case: str) -> None:
    """Whatever it says, it is one error: a restore takes the checkpoint before it, and an upload fails at once."""
    with pytest.raises(ArchiveInvalid):
        unpack(stream([*HOSTILE[case], END]), tmp_path, None, lambda: None)


def test_damage_anywhere_is_refused_or_harmless(tmp_path: Path) -> None:
    """Bytes turned at random raise nothing else, and nothing is written outside."""
    chance = random.Random(7)  # noqa: S311
    whole = b"".join([attributes((b"mtime", b"1.5"), (b"path", b"d/f")), FILE, *HOSTILE["holes beyond the end"], END])
    for number in range(400):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.choice(b"\0\xff019-=\n/.x")
        target = tmp_path / str(number)
        target.mkdir()
        try:
            unpack(stream([bytes(content)]), target, None, lambda: None)
        except (ArchiveInvalid, OSError):
            continue


def endless(first: bytes) -> Iterator[bytes]:
    """A header, and 64 MiB that belong to it."""
    yield first
    for _ in range(64):
        yield b"1\n" * (512 * 1024)


@pytest.mark.parametrize(
    "first",
    [
        header("pax", b"x", 2**30),
        header("././@LongLink", b"L", 2**30),
        header("././@LongLink", b"K", 2**30),
        attributes(*SPARSE) + header("f", size=2**30) + b"9999999\n",
    ],
)
def test_a_header_is_not_read_whole_however_long_it_is(tmp_path: Path, first: bytes) -> None:
    """A few kilobytes could otherwise unfold to all of the machine's memory."""
    packed = stream(endless(first))
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveInvalid, match="header of an entry has more than"):
            unpack(packed, tmp_path, None, lambda: None)
        assert tracemalloc.get_traced_memory()[1] < 40 * 1024**2
    finally:
        tracemalloc.stop()


def test_a_frame_of_very_many_blocks_is_left_to_the_library() -> None:
    """Blocks of one byte each would take a hundred times their bytes as pieces."""
    head = struct.pack("<IBI", 0xFD2FB528, 0xA0, 1000)
    raw = [(1 << 3 | (n == 999)).to_bytes(3, "little") + b"z" for n in range(1000)]
    assert zstd.shown(head + b"".join(raw), codec.BLOCK_BYTES) is None
    whole = b"".join(map(bytes, zstd.stored(bytes(range(256)) * 4096)))
    assert b"".join(zstd.shown(whole, codec.BLOCK_BYTES) or ()) == bytes(range(256)) * 4096


GOOD: dict[str, Any] = {"path": "a", "kind": "f", "mode": 420, "mtime_ns": 0, "size": 0, "link": "", "pieces": []}


@pytest.mark.parametrize(
    "said",
    [
        {"size": -1},
        {"size": 2**63, "pieces": [""]},
        {"size": float("inf")},
        {"mtime_ns": 2**64},
        {"mtime_ns": float("nan")},
        {"kind": "l", "link": "a\0b"},
        {"kind": ""},
        {"kind": "fd"},
        {"path": "a\0b"},
    ],
)
def test_an_entry_of_an_index_that_cannot_be_is_refused(said: dict[str, object]) -> None:
    """Before anything is made of it."""
    Entry.of(GOOD)
    with pytest.raises(ArchiveInvalid):
        Entry.of({**GOOD, **said})


@pytest.mark.parametrize("line", ["[" * 100_000, json.dumps({**GOOD, "mtime_ns": 10**30})])
def test_a_restore_falls_back_from_a_hostile_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str) -> None:
    """To the checkpoint before it, and says why."""
    world = World()
    _, attempt = world.running()
    wire = connect(monkeypatch, Wire(world, attempt))
    first, second = (Agent(tmp_path / name, wire, options=Options(paths=("a",))) for name in ("m0", "m1"))
    (first.work / "a").write_text("good")
    first.checkpoint()
    (first.work / "a").write_text("later")
    with monkeypatch.context() as patched:
        patched.setattr(json, "dumps", hostile_dumps(line))
        first.checkpoint()
    number, why = second.restore()
    assert (number, second.files()) == (1, {"a": b"good"})
    assert "checkpoint 2: " in why


def hostile_dumps(line: str) -> Callable[..., str]:
    """What writes such a line for an entry of an index."""
    dumps = json.dumps
    return lambda value, **how: line if "pieces" in value else dumps(value, **how)
