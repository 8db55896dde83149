"""Where the broker is: as given, else the local cloud, else said that there is none."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.endpoint import broker_url
from cli.errors import Failed, NoBroker, UsageProblem
from cli.main import main
from cli.settings import Settings


def start_local(folder: Path, text: str = '{"api_url": "http://127.0.0.1:1/api/"}') -> None:
    """Leave the record of a local cloud in a folder."""
    (folder / ".spotferry").mkdir(parents=True)
    (folder / ".spotferry" / "stack.json").write_text(text)


def test_an_address_that_was_given_wins(tmp_path: Path) -> None:
    """`--url` is taken as it is, whatever runs here."""
    start_local(tmp_path)
    assert broker_url(Settings(url="https://broker.example/prod/")) == "https://broker.example/prod"


def test_the_local_cloud_is_found_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who went into a folder of examples still speaks to the cloud started above."""
    start_local(tmp_path)
    (tmp_path / "examples" / "count").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "examples" / "count")
    assert broker_url(Settings()) == "http://127.0.0.1:1/api"


def test_a_state_folder_can_be_named(tmp_path: Path) -> None:
    """`--state-dir` says which local cloud."""
    start_local(tmp_path / "elsewhere")
    assert broker_url(Settings(local_state_dir=tmp_path / "elsewhere" / ".spotferry")) == "http://127.0.0.1:1/api"


def test_no_broker_says_how_to_get_one() -> None:
    """Without an address the message names all three ways to give one."""
    with pytest.raises(NoBroker, match=r"--url or SPOTFERRY_URL.*spotferry local up"):
        broker_url(Settings())
    assert CliRunner().invoke(main, ["list"]).exit_code == 2


@pytest.mark.parametrize("url", ["broker.example", "ftp://broker", "http://", "://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    """A slip in the address is told before anything is asked."""
    with pytest.raises(UsageProblem, match="is not an address"):
        broker_url(Settings(url=url))


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_damaged_record_says_what_to_do(tmp_path: Path, text: str) -> None:
    """A record that cannot be read is not taken for none."""
    start_local(tmp_path, text)
    with pytest.raises(Failed, match="spotferry local down"):
        broker_url(Settings())


def test_the_environment_gives_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """SPOTFERRY_URL stands for --url."""
    monkeypatch.setenv("SPOTFERRY_URL", "not-an-address")
    result = CliRunner().invoke(main, ["list"])
    assert "'not-an-address' is not an address" in result.stderr


def test_a_record_without_an_address_is_no_broker(tmp_path: Path) -> None:
    """A record of another shape does not crash the command."""
    start_local(tmp_path, json.dumps({"cloud_url": "x"}))
    with pytest.raises(NoBroker):
        broker_url(Settings())
