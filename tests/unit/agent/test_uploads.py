"""What a commit says of the archive that it makes count."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotferry.agent.archive import Packed
from spotferry.agent.uploads import LISTED_FILES, Upload, Uploader
from tests.unit.agent.clocks import ManualClock
from tests.unit.agent.fake_broker import FakeBroker
from tests.unit.agent.test_link import Line
from tests.unit.agent.test_transfer import broker_of


def nothing() -> None:
    """No order."""


@pytest.fixture
def fake() -> Iterator[FakeBroker]:
    """A broker with a bucket."""
    with FakeBroker({"mode": "fresh"}, instance_id="i-1", token="t") as made:
        yield made


@pytest.mark.parametrize(("count", "complete"), [(0, True), (LISTED_FILES, True), (LISTED_FILES + 1, False)])
def test_a_list_that_was_cut_says_so(
    fake: FakeBroker,
    tmp_path: Path,
    count: int,
    complete: bool,  # noqa: FBT001 (a case)
) -> None:
    """A commit lists the first 10,000 files, and whether there are more."""
    archive = tmp_path / "outputs.tar.gz"
    archive.write_bytes(b"archive")
    files: list[dict[str, str | int]] = [{"path": f"{n}", "size_bytes": 0, "sha256": "0" * 64} for n in range(count)]
    line = Line(tmp_path)
    line.link._broker = broker_of(fake.url)
    packed = Packed(archive, 7, hashlib.sha256(b"archive").hexdigest(), files)
    fake.reports.append(("task_exited", {}))
    Uploader(line.link, ManualClock()).send(Upload("outputs", archive.name, packed, {}), nothing)
    assert fake.commits[0]["files"] == files[:LISTED_FILES]
    assert fake.commits[0]["files_complete"] is complete
    assert fake.problems == []
