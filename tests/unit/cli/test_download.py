"""`spotferry download`: outputs arrive whole and checked, or not at all."""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run

FILES = {"out/model.bin": b"weights" * 100, "log.txt": b"done\n"}


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """An entry of an archive."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def archive_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A .tar.gz of entries."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def listing(files: Mapping[str, bytes]) -> list[dict[str, object]]:
    """The broker's list of an archive's files."""
    return [{"path": p, "size_bytes": len(c), "sha256": hashlib.sha256(c).hexdigest()} for p, c in files.items()]


def offer(broker: "FakeBroker", archive: bytes, files: Mapping[str, bytes] = FILES, **changes: object) -> None:
    """Have the broker offer outputs."""
    answer = {
        "url": "https://bucket.example/outputs?signed=1",
        "sha256": hashlib.sha256(archive).hexdigest(),
        "size_bytes": len(archive),
        "files": listing(files),
        **changes,
    }
    broker.on("GET /jobs/j-1/outputs", answer)
    broker.on("GET /outputs", httpx.Response(200, content=archive))


WHOLE = archive_of(*[member(name, content) for name, content in FILES.items()])


def test_outputs_arrive(run: "Run", broker: "FakeBroker", tmp_path: Path) -> None:
    """Every file is there with its bytes; nothing else is left in the folder."""
    offer(broker, WHOLE)
    result = run("download", "j-1", "--into", "here/deep")
    assert result.exit_code == 0
    assert result.stdout == "here/deep/out/model.bin\nhere/deep/log.txt\n"
    assert "2 files, 705 B, digests match" in result.stderr
    found = {str(p.relative_to("here/deep")): p.read_bytes() for p in Path("here/deep").rglob("*") if p.is_file()}
    assert found == FILES
    assert not list((tmp_path / "here" / "deep").glob(".spotferry-*"))


def test_the_default_folder_is_named_after_the_job(run: "Run", broker: "FakeBroker") -> None:
    """Without --into nothing of the person's own is overwritten."""
    offer(broker, WHOLE)
    document = json.loads(run("download", "j-1", "--json").stdout)
    assert document == {"folder": "outputs-j-1", "files": listing(FILES), "skipped": [], "missed": []}
    assert Path("outputs-j-1/log.txt").read_bytes() == b"done\n"


def test_patterns_that_matched_nothing_are_told(run: "Run", broker: "FakeBroker") -> None:
    """Beside the files that came; a broker of before says nothing."""
    offer(broker, WHOLE, missed=["nope.txt", "out/*.npz"])
    assert "nothing matched: nope.txt, out/*.npz\n" in run("download", "j-1").stderr
    assert json.loads(run("download", "j-1", "--json").stdout)["missed"] == ["nope.txt", "out/*.npz"]
    offer(broker, WHOLE)
    assert "nothing matched" not in run("download", "j-1").stderr


def test_files_of_the_same_name_are_replaced_and_others_stay(run: "Run", broker: "FakeBroker") -> None:
    """A second download brings the folder up to date."""
    offer(broker, WHOLE)
    Path("here/out/model.bin").mkdir(parents=True)
    Path("here/mine").write_text("mine")
    Path("here/log.txt").write_text("old")
    assert run("download", "j-1", "--into", "here").exit_code == 0
    assert Path("here/log.txt").read_bytes() == b"done\n"
    assert Path("here/out/model.bin").read_bytes() == FILES["out/model.bin"]
    assert Path("here/mine").read_text() == "mine"


def test_a_download_survives_a_stumble(run: "Run", broker: "FakeBroker") -> None:
    """What broke off is fetched again from its start."""
    offer(broker, WHOLE)
    broker.on("GET /outputs", httpx.ReadError("reset"), httpx.Response(503), httpx.Response(200, content=WHOLE))
    assert run("download", "j-1").exit_code == 0


def test_no_credentials_go_to_the_bucket(run: "Run", broker: "FakeBroker", monkeypatch: pytest.MonkeyPatch) -> None:
    """The token for the broker is for the broker alone."""
    monkeypatch.setenv("SPOTFERRY_TOKEN", "t0")
    offer(broker, WHOLE)
    assert run("download", "j-1").exit_code == 0
    assert [request.headers.get("Authorization") for request in broker.asked] == ["Bearer t0", None]


LOG = {"log.txt": b"done\n"}


@pytest.mark.parametrize(
    ("archive", "words"),
    [
        (archive_of(member("../log.txt", b"done\n")), "holds ../log.txt, which the broker's list does not"),
        (archive_of(member("/tmp/log.txt", b"done\n")), "holds /tmp/log.txt"),  # noqa: S108 (nothing is written there)
        (archive_of(member("log.txt", b"more than announced")), "has 19 bytes"),
        (archive_of(member("log.txt", b"DONE\n")), "log.txt is damaged"),
        (archive_of(), "log.txt is missing"),
        (archive_of(member("log.txt", type=tarfile.SYMTYPE, linkname="../../etc/passwd")), "log.txt is missing"),
        (archive_of(member("log.txt", type=tarfile.LNKTYPE, linkname="/etc/passwd")), "log.txt is missing"),
        (archive_of(member("log.txt", type=tarfile.FIFOTYPE)), "log.txt is missing"),
        (archive_of(member("x", type=tarfile.SYMTYPE, linkname=".."), member("x/log.txt", b"done\n")), "x/log.txt"),
        (b"no archive", "is refused"),
        (WHOLE[:50], "is refused"),
    ],
    ids=["up", "absolute", "longer", "other", "missing", "link", "hard link", "pipe", "through a link", "junk", "cut"],
)
def test_an_archive_that_is_not_as_announced_writes_nothing(
    run: "Run", broker: "FakeBroker", tmp_path: Path, archive: bytes, words: str
) -> None:
    """Escapes, damage, surplus and gaps are refused, and the folder stays as it was."""
    offer(broker, archive, LOG)
    result = run("download", "j-1", "--into", "here")
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert not list((tmp_path / "here").iterdir())
    assert not (tmp_path / "log.txt").exists()


LINK, HARD, PIPE = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE


@pytest.mark.parametrize(
    "odd",
    [
        [member("odd", type=PIPE)],
        [member("odd", type=tarfile.CHRTYPE)],
        [member("odd", type=LINK, linkname="/usr/share/data")],
        [member("odd", type=LINK, linkname="../elsewhere")],
        [member("out/odd", type=LINK, linkname="../../elsewhere")],
        [member("odd", type=HARD, linkname="/etc/hostname")],
        [
            member("odd", type=LINK, linkname="b/c/../.."),
            member("b", type=LINK, linkname="."),
            member("c", type=LINK, linkname="."),
        ],
    ],
    ids=["pipe", "device", "absolute", "up", "up from below", "hard link", "by way of later ones"],
)
def test_what_a_folder_must_not_hold_is_left_out_and_the_rest_arrives(
    run: "Run", broker: "FakeBroker", odd: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    """A pipe or a link that leads out costs the person that one entry, by name, not the outputs."""
    archive = archive_of(
        *odd, member("near", type=LINK, linkname="log.txt"), *[member(*file) for file in FILES.items()]
    )
    offer(broker, archive)
    result = run("download", "j-1", "--into", "here")
    assert (result.exit_code, result.stdout) == (0, "here/out/model.bin\nhere/log.txt\n")
    assert f"{odd[0][0].name} was left out" in result.stderr
    assert not os.path.lexists(Path("here", odd[0][0].name))
    assert Path("here/near").read_bytes() == b"done\n"
    assert Path("here/out/model.bin").read_bytes() == FILES["out/model.bin"]


def test_what_was_left_out_is_in_the_document(run: "Run", broker: "FakeBroker") -> None:
    """A program learns the names too."""
    offer(broker, archive_of(member("pipe", type=PIPE), member("log.txt", b"done\n")), LOG)
    document = json.loads(run("download", "j-1", "--json").stdout)
    assert document["skipped"] == ["pipe"]
    assert document["files"] == listing(LOG)


def test_files_beyond_an_incomplete_list_arrive(run: "Run", broker: "FakeBroker") -> None:
    """They stand by the archive's digest, and are listed with the digest that they have."""
    offer(broker, WHOLE, LOG, files_complete=False)
    document = json.loads(run("download", "j-1", "--into", "here", "--json").stdout)
    assert document["files"] == listing({"log.txt": FILES["log.txt"], "out/model.bin": FILES["out/model.bin"]})
    assert Path("here/out/model.bin").read_bytes() == FILES["out/model.bin"]


def test_a_name_that_is_no_text_arrives(run: "Run", broker: "FakeBroker") -> None:
    """A file whose name is not UTF-8 has its very name in the folder, and is told as it can be: bytes, or escaped."""
    name = os.fsdecode(b"b\xff")
    offer(broker, archive_of(member(name, b"x"), member("log.txt", b"done\n")), LOG, files_complete=False)
    assert os.fsencode(Path("here") / name) in run("download", "j-1", "--into", "here").stdout_bytes.splitlines()
    assert (Path("here") / name).read_bytes() == b"x"
    document = json.loads(run("download", "j-1", "--into", "here", "--json").stdout)
    assert [file["path"] for file in document["files"]] == ["log.txt", name]


@pytest.mark.parametrize("complete", [True, None])
def test_a_complete_list_covers_every_file(run: "Run", broker: "FakeBroker", complete: bool | None) -> None:  # noqa: FBT001 (a case)
    """A file that a list does not name is refused where the broker says that it names all, or says nothing."""
    offer(broker, WHOLE, LOG, **({} if complete is None else {"files_complete": complete}))
    result = run("download", "j-1", "--into", "here")
    assert (result.exit_code, list(Path("here").iterdir())) == (1, [])
    assert "holds out/model.bin, which the broker's list does not" in result.stderr


@pytest.mark.parametrize(
    "members",
    [
        [member("log.txt", b"DONE\n"), member("more")],
        [member("more")],
        [member("../more", b"x"), member("log.txt", b"done\n")],
        [
            member("x", type=LINK, linkname="y/z/../.."),
            member("y", type=LINK, linkname="."),
            member("z", type=LINK, linkname="."),
            member("x/more", b"x"),
            member("log.txt", b"done\n"),
        ],
    ],
    ids=["damaged", "missing", "up", "through a link"],
)
def test_an_incomplete_list_forgives_nothing_else(
    run: "Run", broker: "FakeBroker", tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    """What is listed must be there with its digest, and nothing is written outside."""
    offer(broker, archive_of(*members), LOG, files_complete=False)
    assert run("download", "j-1", "--into", "deep/here").exit_code == 1
    assert list(Path("deep/here").iterdir()) == []
    assert not list(tmp_path.rglob("more"))


def test_a_rooted_name_beyond_an_incomplete_list_stays_inside(run: "Run", broker: "FakeBroker") -> None:
    """A name from the root of the file system is one below the folder."""
    offer(broker, archive_of(member("/more/x", b"x"), member("log.txt", b"done\n")), LOG, files_complete=False)
    assert run("download", "j-1", "--into", "here").exit_code == 0
    assert Path("here/more/x").read_bytes() == b"x"


def test_a_folders_links_are_not_followed(run: "Run", broker: "FakeBroker") -> None:
    """A link in the folder that has the name of one of the outputs' folders makes way for it."""
    offer(broker, WHOLE)
    Path("elsewhere").mkdir()
    Path("here").mkdir()
    Path("here/out").symlink_to("../elsewhere")
    assert run("download", "j-1", "--into", "here").exit_code == 0
    assert list(Path("elsewhere").iterdir()) == []
    assert Path("here/out/model.bin").read_bytes() == FILES["out/model.bin"]


def test_a_damaged_download_is_refused(run: "Run", broker: "FakeBroker") -> None:
    """The archive's own digest is checked before it is opened."""
    offer(broker, WHOLE, sha256="0" * 64)
    result = run("download", "j-1")
    assert result.exit_code == 1
    assert "the download is damaged" in result.stderr


@pytest.mark.parametrize(("status", "exit_code"), [(404, 2), (403, 1), (500, 1)])
def test_a_bucket_that_says_no(run: "Run", broker: "FakeBroker", status: int, exit_code: int) -> None:
    """Gone outputs are bad input, an expired address and an outage are not."""
    offer(broker, WHOLE)
    broker.on("GET /outputs", httpx.Response(status))
    result = run("download", "j-1")
    assert (result.exit_code, result.stdout) == (exit_code, "")


def test_a_folder_that_cannot_be_made_is_named(run: "Run", broker: "FakeBroker") -> None:
    """Trouble with the folder is told with its name."""
    offer(broker, WHOLE)
    Path("taken").write_text("")
    result = run("download", "j-1", "--into", "taken/below")
    assert result.exit_code == 1
    assert "taken/below" in result.stderr
