"""`spotferry catalog diff` says what became cheaper, dearer, new or gone."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from spotferry.catalog.catalogue_file import write_catalogue
from spotferry.types import Offer
from tests.unit.cli.conftest import Run

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def offer(name: str, spot: str, **changes: object) -> Offer:
    """An offer with a spot price alone."""
    made = Offer(
        provider="aws",
        region="r",
        zone="r-a",
        instance_type=name,
        vcpus=2,
        memory_gib=8,
        spot_usd_hour=Decimal(spot),
    )
    return made.model_copy(update=changes)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Two catalogues: one price fell, one rose, one stayed, one machine went, one came."""
    before, after = tmp_path / "before.db", tmp_path / "after.db"
    write_catalogue(
        before, [offer("fell", "0.10"), offer("rose", "0.10"), offer("stayed", "1"), offer("went", "2")], NOW
    )
    came = offer("came", "3", gpu_name="T4", gpu_count=2, provider="gcp", zone="")
    write_catalogue(after, [offer("fell", "0.09"), offer("rose", "0.15"), offer("stayed", "1"), came], NOW)
    return before, after


def test_diff_is_a_summary_and_the_largest_changes(run: Run, files: tuple[Path, Path]) -> None:
    """Counts by cloud, then each change with its price before and after."""
    result = run("catalog", "diff", *files)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[:3] == [
        ["PROVIDER", "CHEAPER", "DEARER", "NEW", "GONE", "SAME"],
        ["aws", "1", "1", "0", "1", "1"],
        ["gcp", "0", "0", "1", "0", "0"],
    ]
    assert lines[5:] == [
        ["dearer", "+50.0%", "aws", "r-a", "rose", "spot", "0.10", "0.15"],
        ["cheaper", "-10.0%", "aws", "r-a", "fell", "spot", "0.10", "0.09"],
        ["new", "gcp", "r", "came", "with", "2", "x", "T4", "spot", "-", "3"],
        ["gone", "aws", "r-a", "went", "spot", "2", "-"],
    ]


def test_the_rest_is_counted(run: Run, files: tuple[Path, Path]) -> None:
    """A limit says how many it hides; none at all leaves the summary."""
    assert "3 more changes; --limit 4 prints all" in run("catalog", "diff", *files, "--limit", "1").stdout
    assert "CHANGE" not in run("catalog", "diff", *files, "--limit", "0").stdout


def test_diff_as_json_has_every_change(run: Run, files: tuple[Path, Path]) -> None:
    """Prices are numbers, and null where there is none."""
    document = json.loads(run("catalog", "diff", *files, "--json", "--limit", "1").stdout)
    assert document["summary"]["aws"] == {"cheaper": 1, "dearer": 1, "new": 0, "gone": 1, "same": 1}
    found = [(c["change"], c["before_usd_hour"], c["after_usd_hour"]) for c in document["changes"]]
    assert found == [("dearer", 0.1, 0.15), ("cheaper", 0.1, 0.09), ("new", None, 3), ("gone", 2, None)]


def test_catalogues_that_are_alike(run: Run, files: tuple[Path, Path]) -> None:
    """Nothing changed is an answer too."""
    result = run("catalog", "diff", files[0], files[0])
    assert result.stdout.split()[6:] == ["aws", "0", "0", "0", "0", "4"]


def test_what_is_no_catalogue_ends_with_2(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    """The file that is wrong is named."""
    other = tmp_path / "list.csv"
    other.write_text("InstanceType,Price\n")
    result = run("catalog", "diff", files[0], other)
    assert result.exit_code == 2
    assert "list.csv: is not a catalogue" in result.stderr
