"""`spotferry plan` shows the choice and its proof, and refuses what can never be."""

import json
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from cli.plan import plan
from cli.settings import Settings
from spotferry.catalog.catalogue_file import write_catalogue
from spotferry.catalog.starter import starter_offers
from spotferry.domain.placement import Limits, OfferIndex, choose
from spotferry.types import UserInstanceSpecs

JOB = "instance_specs: {memory_gb: 16}\ntask: {run: ./count}\n"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job file that asks for 16 GiB."""
    path = tmp_path / "job.yml"
    path.write_text(JOB)
    return path


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """A catalogue of the starter offers."""
    path = tmp_path / "offers.db"
    write_catalogue(path, starter_offers(), datetime(2026, 1, 1, tzinfo=UTC))
    return path


def run(*arguments: object, settings: Settings | None = None, folder: Path | None = None) -> Result:
    """Run the command, away from any local cloud of this machine."""
    nowhere = Settings(local_state_dir=(folder or Path("/nonexistent")) / "no-stack")
    return CliRunner().invoke(plan, [str(argument) for argument in arguments], obj=settings or nowhere)


def test_json_holds_the_choice_and_its_proof(job: Path, catalogue: Path) -> None:
    """The document names the cheapest that fits, as brute choice finds it, and counts that add up."""
    result = run(job, "--catalog", catalogue, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    expected = choose(OfferIndex(starter_offers()), UserInstanceSpecs(memory_gb=16), Limits())
    assert expected is not None
    assert document["version"] == 1
    assert document["chosen"]["instance_type"] == expected.offer.instance_type
    assert document["chosen"]["total_usd_hour"] == float(expected.total_usd_hour)
    assert document["fit"] + sum(document["excluded"].values()) == document["considered"] == 2 * len(starter_offers())
    assert len(document["next"]) == 10
    assert expected.offer.instance_type in document["why"]


def test_table_shows_chosen_next_and_excluded(job: Path, catalogue: Path) -> None:
    """A person sees what was chosen and why, the next ones, and what excluded the others."""
    result = run(job, "--catalog", catalogue, "--limit", 2)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "is the cheapest of" in lines[0]
    assert [line.split()[0] for line in lines if line.startswith(("chosen", "next"))] == ["chosen", "next", "next"]
    assert any(line.split()[:1] == ["memory_gb"] for line in lines)
    assert "providers" not in result.stdout
    assert any(line.startswith("spot (sold in the other market) ") for line in lines)
    assert lines[-2] == ""
    assert lines[-1].split()[1:3] == ["of", str(2 * len(starter_offers()))]


def test_gpu_is_shown_with_its_count(catalogue: Path, tmp_path: Path) -> None:
    """A machine with GPUs shows how many of which."""
    job = tmp_path / "gpu.yml"
    job.write_text("instance_specs: {gpu: t4, gpu_count: 4}\ntask: {run: ./train}\n")
    assert "4 x T4" in run(job, "--catalog", catalogue).stdout


def test_whole_runs_are_shown_where_they_count(catalogue: Path, tmp_path: Path) -> None:
    """With inputs or an expected duration each machine shows the cost of its run; else the columns are not there."""
    job = tmp_path / "data.yml"
    job.write_text(
        "inputs: [{uri: s3://data/x, location: aws/us-east-1, size_gb: 500}]\nexpected_hours: 4\ntask: {run: ./train}\n"
    )
    shown = run(job, "--catalog", catalogue).stdout
    assert "For 4 hours of work it comes to" in shown
    assert "TRANSFER" in shown
    document = json.loads(run(job, "--catalog", catalogue, "--json").stdout)
    assert document["chosen"]["region"] == "us-east-1"
    assert document["chosen"]["run_transfer_usd"] == 0
    job.write_text("task: {run: ./train}\n")
    assert "TRANSFER" not in run(job, "--catalog", catalogue).stdout


@pytest.mark.parametrize(
    ("specs", "field"),
    [
        ("max_price_usd_hour: 0.00001", "max_price_usd_hour"),
        ("memory_gb: 100000", "memory_gb"),
        ("disk_gb: 2", "disk_gb"),
        ("instance_type: m5.nonsense", "instance_type"),
    ],
)
def test_impossible_specification_ends_with_2_and_names_the_field(
    catalogue: Path, tmp_path: Path, specs: str, field: str
) -> None:
    """Nothing can fit: exit status 2, the field on stderr, and still the proof on stdout."""
    job = tmp_path / "impossible.yml"
    job.write_text(f"instance_specs: {{{specs}}}\ntask: {{run: ./count}}\n")
    result = run(job, "--catalog", catalogue, "--json")
    assert result.exit_code == 2
    assert f"impossible.yml: instance_specs.{field}: No offer fits" in result.stderr
    assert json.loads(result.stdout)["chosen"] is None


def test_malformed_job_file_ends_with_2_and_names_line_and_key(catalogue: Path, tmp_path: Path) -> None:
    """A job file that is wrong is told by file, line and key."""
    job = tmp_path / "bad.yml"
    job.write_text("task: {run: x}\ninstance_specs:\n  memory: 16\n")
    result = run(job, "--catalog", catalogue)
    assert result.exit_code == 2
    assert "bad.yml:3: instance_specs.memory" in result.stderr
    assert result.stdout == ""


def test_catalogue_that_is_none_ends_with_2_and_names_the_file(job: Path) -> None:
    """A catalogue that is no catalogue is told by name."""
    result = run(job, "--catalog", job)
    assert result.exit_code == 2
    assert "job.yml: is not a catalogue" in result.stderr


def test_without_a_broker_the_starter_offers_are_used_and_said_to_be(job: Path, tmp_path: Path) -> None:
    """No broker and no catalogue: a plan over the starter offers, and a word about it on stderr."""
    result = run(job, "--json", folder=tmp_path)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["considered"] == 2 * len(starter_offers())
    assert "starter offers" in result.stderr


def test_broker_is_asked_with_the_job_file_as_it_is(job: Path) -> None:
    """Where there is a broker, it decides: it gets the file's text, and its plan is printed."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        document: dict[str, object] = {
            "version": 1,
            "chosen": None,
            "considered": 3,
            "fit": 0,
            "excluded": {"banned": 3},
            "next": [],
        }
        return httpx.Response(200, json={**document, "why": "Nothing that fits is free now."})

    settings = Settings(url="http://broker.test", auth="none", transport=httpx.MockTransport(answer))
    result = run(job, settings=settings)
    assert result.exit_code == 0, result.output
    assert (asked[0].method, asked[0].url.path, json.loads(asked[0].content)) == ("POST", "/plan", {"job_file": JOB})
    assert result.stdout.startswith("Nothing that fits is free now.")
    assert result.stdout.endswith("left alone after refused launches  3\n\n0 of 3 considered fit\n")
