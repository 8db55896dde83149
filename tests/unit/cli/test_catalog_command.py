"""`spotferry catalog` imports price lists and says what it took, what it left out, and why."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli import catalog as module
from cli.catalog import catalog
from spotferry.catalog.catalogue_file import SCHEMA_VERSION, read_catalogue

HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
GOOD = "m5.large,,,2.0,8.0,,0.096,0.03,us-east-1,use1-az1"
NO_PRICE = "m5.large,,,2.0,8.0,,,,us-east-1,use1-az2"


@pytest.fixture
def price_list(tmp_path: Path) -> Path:
    """A list with a good row and one without a price."""
    path = tmp_path / "aws.csv"
    path.write_text(f"{HEADER}\n{GOOD}\n{NO_PRICE}\n")
    return path


def run(*arguments: object) -> Result:
    """Run the group."""
    return CliRunner().invoke(catalog, [str(argument) for argument in arguments])


def test_import_says_what_it_took_and_left_out(price_list: Path, tmp_path: Path) -> None:
    """Rows taken, rows left out by reason, and what the file holds now."""
    result = run("import", price_list, "--provider", "aws", "--into", tmp_path / "o.db")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "2 rows: 1 taken, 1 left out",
        "       1  no price in any market",
        f"{tmp_path / 'o.db'} now holds 1 of aws",
    ]
    assert [offer.zone for offer in read_catalogue(tmp_path / "o.db")] == ["use1-az1"]


def test_import_as_json(price_list: Path, tmp_path: Path) -> None:
    """The same, as one document."""
    result = run("import", price_list, "--provider", "aws", "--into", tmp_path / "o.db", "--json")
    assert json.loads(result.stdout) == {
        "version": 1,
        "provider": "aws",
        "into": str(tmp_path / "o.db"),
        "rows": 2,
        "taken": 1,
        "offers": 1,
        "left_out": {"no price in any market": 1},
        "catalogue": {"aws": 1},
    }


def test_import_replaces_one_cloud_and_keeps_the_others(price_list: Path, tmp_path: Path) -> None:
    """A second list of the same cloud takes the place of the first; other clouds' offers stay."""
    into, other = tmp_path / "o.db", tmp_path / "gcp.csv"
    other.write_text(f"{HEADER}\n{GOOD.replace('m5.large', 'n1-standard-2')}\n")
    run("import", price_list, "--provider", "aws", "--into", into)
    run("import", other, "--provider", "gcp", "--into", into)
    price_list.write_text(f"{HEADER}\n{GOOD.replace('m5.large', 'c5.large')}\n")
    result = run("import", price_list, "--provider", "aws", "--into", into, "--json")
    assert json.loads(result.stdout)["catalogue"] == {"aws": 1, "gcp": 1}
    assert [offer.instance_type for offer in read_catalogue(into)] == ["c5.large", "n1-standard-2"]


def test_row_for_several_regions_is_said_to_make_several_offers(tmp_path: Path) -> None:
    """One row in, three offers out: the figures are told apart."""
    path = tmp_path / "paperspace.csv"
    path.write_text('Name,vRAM,vCPUs,RAM (GB),Price,Regions\nC1,,1,0.5,$0.0045/hr,"AMS1, NY2, CA1"\n')
    result = run("import", path, "--provider", "paperspace", "--into", tmp_path / "o.db")
    assert result.stdout.splitlines()[:2] == [
        "1 rows: 1 taken, 0 left out",
        "3 offers of paperspace: a row for several regions makes several",
    ]


def test_prices_are_dated_as_said_or_by_the_file(price_list: Path, tmp_path: Path) -> None:
    """The age of prices is the file's, unless the person knows better."""
    into = tmp_path / "o.db"
    run("import", price_list, "--provider", "aws", "--into", into)
    changed = datetime.fromtimestamp(int(price_list.stat().st_mtime), UTC)
    assert read_catalogue(into)[0].read_at == changed
    run("import", price_list, "--provider", "aws", "--into", into, "--read-at", "2023-07-01")
    assert read_catalogue(into)[0].read_at == datetime(2023, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not a list", "aws.csv: is not a price list"),
        (f"{HEADER}\n{NO_PRICE}\n", "aws.csv: no row of 1 can be taken (no price in any market: 1)"),
        (f"{HEADER}\n", "aws.csv: no row of 0 can be taken (it is empty)"),
    ],
)
def test_list_that_cannot_be_taken_ends_with_2_and_changes_nothing(
    price_list: Path, tmp_path: Path, text: str, says: str
) -> None:
    """A file that is no price list leaves the catalogue as it was."""
    into = tmp_path / "o.db"
    run("import", price_list, "--provider", "aws", "--into", into)
    before = into.read_bytes()
    price_list.write_text(text)
    result = run("import", price_list, "--provider", "aws", "--into", into)
    assert result.exit_code == 2
    assert says in result.stderr
    assert into.read_bytes() == before


def test_file_that_is_no_catalogue_is_not_overwritten(price_list: Path) -> None:
    """Naming another file by mistake does not cost it."""
    before = price_list.read_bytes()
    result = run("import", price_list, "--provider", "aws", "--into", price_list)
    assert result.exit_code == 2
    assert "is not a catalogue" in result.stderr
    assert price_list.read_bytes() == before


@pytest.mark.parametrize(("provider", "status"), [("aws", 2), ("nimbus", 2)])
def test_missing_list_and_unknown_cloud_end_with_2(tmp_path: Path, provider: str, status: int) -> None:
    """What is not there, and who is not known, are told as such."""
    result = run("import", tmp_path / "none.csv", "--provider", provider, "--into", tmp_path / "o.db")
    assert result.exit_code == status
    assert ("none.csv: cannot be read" in result.stderr) == (provider == "aws")
    assert not (tmp_path / "o.db").exists()


def test_catalogue_that_cannot_be_written_ends_with_1(price_list: Path, tmp_path: Path) -> None:
    """A folder that is not there is told by the file's name."""
    result = run("import", price_list, "--provider", "aws", "--into", tmp_path / "no" / "o.db")
    assert result.exit_code == 1
    assert "o.db: cannot be written" in result.stderr


def test_long_import_gives_a_sign_of_life(price_list: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it takes longer than the quiet time, it says how far it is, on stderr."""
    monkeypatch.setattr(module, "QUIET_SECONDS", -1.0)
    rows = "\n".join(GOOD.replace("az1", f"az{number}") for number in range(2000))
    price_list.write_text(f"{HEADER}\n{rows}\n")
    result = run("import", price_list, "--provider", "aws", "--into", tmp_path / "o.db")
    assert result.stderr.splitlines() == [f"importing {price_list}: 1000 rows"]


def test_show_says_what_a_catalogue_holds(price_list: Path, tmp_path: Path) -> None:
    """Offers of each cloud and region and the age of their prices, for people and for programs."""
    into = tmp_path / "o.db"
    run("import", price_list, "--provider", "aws", "--into", into, "--read-at", "2023-07-01")
    lines = run("show", into).stdout.splitlines()
    assert lines[2].split() == ["PROVIDER", "REGION", "OFFERS", "OLDEST", "PRICE", "AGE", "PROBLEM"]
    assert lines[3].startswith("aws       us-east-1  1       2023-07-01 00:00:00  ")
    assert lines[3].endswith(" days  -")
    assert lines[-1] == "1 of aws"
    shown = json.loads(run("show", into, "--json").stdout)
    date = "2023-07-01T00:00:00+00:00"
    assert shown["version"] == SCHEMA_VERSION
    assert shown["sources"] == {"aws": {"offers": 1, "oldest": date, "newest": date}}


def test_show_refuses_what_is_no_catalogue(price_list: Path) -> None:
    """Another file is refused by name, with exit status 2."""
    result = run("show", price_list)
    assert result.exit_code == 2
    assert "aws.csv: is not a catalogue" in result.stderr
