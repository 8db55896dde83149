"""The benchmark command measures what it is asked to, and says whether promises are kept."""

import json
from pathlib import Path

import pytest

from benchmarks import decisions, recovery, run
from benchmarks.offer_lists import made_up, times
from benchmarks.report import Measurement, median_and_worst
from benchmarks.run import main
from spotferry.catalog.starter import starter_offers

HEADER = "InstanceType,vCPUs,MemoryGiB,Price,SpotPrice,Region"


@pytest.fixture
def price_list(tmp_path: Path) -> Path:
    """A small list."""
    path = tmp_path / "aws.csv"
    path.write_text(f"{HEADER}\nm5.large,2,8,0.096,0.03,us-east-1\nm5.xlarge,4,16,0.192,0.06,us-east-1\n")
    return path


def test_decisions_and_catalogue_are_measured_and_kept_as_json(
    price_list: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One table and one document with the same figures."""
    monkeypatch.setattr(decisions, "REPEATS", 1)
    results = tmp_path / "results.json"
    main(["--csv", f"aws={price_list}", "--only", "decisions", "--only", "catalogues", "--json", str(results)])
    document = json.loads(results.read_text())
    figures = {(m["subject"], m["measure"]): m for m in document["measurements"]}
    assert document["version"] == 1
    assert figures["decision", "offers"]["value"] == 2
    assert figures["choice, warm", "median"]["at_most"] == 0.2
    assert figures["catalogue", "size"]["value"] > 0
    assert "choice with proof, warm" in capsys.readouterr().out


def test_quiet_job_is_left_out_where_it_cannot_be_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, price_list: Path
) -> None:
    """A subject whose module is missing is no failure."""
    monkeypatch.setattr(run, "QUIET_JOB", "benchmarks.nowhere")
    main(["--csv", str(price_list), "--only", "quiet_job", "--json", str(tmp_path / "r.json")])
    assert json.loads((tmp_path / "r.json").read_text())["measurements"] == []


@pytest.mark.parametrize("wrong", ["nimbus=x.csv", "aws=/nowhere.csv"])
def test_wrong_argument_ends_with_2(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A cloud that is not known or a file that is not there is told."""
    with pytest.raises(SystemExit) as ended:
        main(["--csv", wrong])
    assert ended.value.code == 2
    assert wrong in capsys.readouterr().err


def test_file_that_is_no_price_list_is_told(tmp_path: Path) -> None:
    """A CSV that is none ends the command with the file's name."""
    path = tmp_path / "gcp.csv"
    path.write_text("hello")
    with pytest.raises(SystemExit, match=r"gcp\.csv: is not a price list"):
        main(["--csv", str(path)])


def test_made_up_lists_have_the_asked_size_and_few_types() -> None:
    """The starter offers are multiplied without a repetition."""
    offers = made_up(10_000)
    assert len(offers) >= 10_000
    assert len({(o.region, o.zone, o.instance_type) for o in offers}) == len(offers)
    assert len({o.instance_type for o in offers}) == 7 * len({o.instance_type for o in starter_offers()})
    assert len(times(offers[:100], 3)) == 300


def test_figures_over_their_promise_are_marked() -> None:
    """A promise is kept up to the figure itself."""
    assert [Measurement("a", "b", value, "ms", 2.0).verdict for value in (1.0, 2.0, 2.1)] == ["ok", "ok", "OVER"]
    assert Measurement("a", "b", 9.0, "ms").verdict == ""
    assert [m.value for m in median_and_worst("a", [3.0, 1.0, 2.0], None, None)] == [2.0, 3.0]


def test_figures_of_interruptions_are_promised_where_the_design_does() -> None:
    """The notice's two figures have limits, by median and worst; the rest is told."""
    found = list(recovery._figures([recovery.Interruption(1, 0.5, 3), recovery.Interruption(7, 0.7, 4)]))
    assert [(m.value, m.verdict) for m in found] == [
        (4, "ok"),
        (7, "OVER"),
        (0.6, "ok"),
        (0.7, "ok"),
        (3.5, ""),
        (4, ""),
    ]
