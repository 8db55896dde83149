"""The contract against real accounts: what starts it, and what it does before it starts anything."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from spotferry.ports.cloud import CloudProvider
from spotferry.types.instance import Instance
from tests.contract import live, live_aws
from tests.contract.live_cloud import LiveCloud, nothing_left
from tests.contract.provider_contract_world import World, an_empty_attempt


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What pytest was started with."""
    runs: list[list[str]] = []

    def record(arguments: list[str]) -> int:
        runs.append(arguments)
        return 0

    monkeypatch.setattr("tests.contract.live.pytest.main", record)
    return runs


@pytest.mark.parametrize("said", [{}, {"SPOTFERRY_LIVE": ""}, {"SPOTFERRY_LIVE": "1"}, {"SPOTFERRY_LIVE": "YES"}])
@pytest.mark.parametrize("name", live.providers())
def test_nothing_is_started_without_a_clear_word(
    name: str, said: dict[str, str], started: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without SPOTFERRY_LIVE=yes it says what a run costs and how to start it, and ends with status 2."""
    assert live.main([name], said) == 2
    words = capsys.readouterr().err
    assert started == []
    assert "Nothing was started" in words
    assert f"SPOTFERRY_LIVE=yes make contract-live PROVIDER={name}" in words
    assert "no more than $" in words


def test_a_run_names_its_bound_and_its_one_file(started: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    """With the word the one file is run, by pytest alone, after the bound was told."""
    assert live.main(["aws"], {"SPOTFERRY_LIVE": "yes"}) == 0
    assert [run[0].rpartition("/")[2] for run in started] == ["live_aws.py"]
    assert "at most 40 machines of type t3.micro, each for at most 15 minutes" in capsys.readouterr().err


def test_a_cloud_that_cannot_be_run_is_named_with_those_that_can(
    started: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong name starts nothing."""
    with pytest.raises(SystemExit):
        live.main(["ibm"], {"SPOTFERRY_LIVE": "yes"})
    assert "aws" in capsys.readouterr().err
    assert started == []


def test_levers_of_a_real_account_skip_their_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be steered is skipped, with the reason; nothing is called for it."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    account = live_aws.LiveAws()
    candidate = account.candidate()
    attempt = an_empty_attempt(candidate)
    levers: list[Callable[[], object]] = [
        lambda: account.stock_up(1200),
        lambda: account.exhaust(candidate),
        lambda: account.use_up_quota(candidate),
        lambda: account.throttle(1),
        lambda: account.fail_next("X"),
        lambda: account.lose_answers(1),
        account.hide_new_machines,
        account.revoke_credentials,
        lambda: account.deny_region(candidate),
        lambda: account.end_without_notice(attempt),
        lambda: account.switch_off(attempt),
    ]
    for lever in levers:
        with pytest.raises(pytest.skip.Exception, match="a real account"):
            lever()
    assert account.calls() == 0


class FakeAccount(LiveCloud):
    """An account with machines by deployment."""

    regions = ("here", "there")

    def __init__(self, **machines: list[str]) -> None:
        self.machines = machines
        self._deployment = ""

    def provider(self, world: World) -> CloudProvider:
        """Itself, asked about one deployment."""
        self._deployment = world.deployment
        return self  # type: ignore[return-value]  # two of its methods are all that is called

    def owned_instances(self, region: str) -> Iterator[Instance]:
        """Those of the deployment, all in the first region."""
        if region == "here":
            yield from [Instance(allocated_id=i, state="running") for i in self.machines.get(self._deployment, [])]

    def destroy_instance(self, instance: Instance) -> None:
        """It is gone at once."""
        self.machines = {name: [i for i in ids if i != instance.allocated_id] for name, ids in self.machines.items()}


@contextmanager
def run_of(account: FakeAccount) -> Iterator[None]:
    """A run in which one machine is started."""
    with nothing_left(account):
        account.machines["contract"] = ["m-1"]
        yield


def test_a_run_ends_what_it_started() -> None:
    """Whatever happens in it, no machine of the suite's deployments is left."""
    account = FakeAccount(other=["m-0"])
    with pytest.raises(ZeroDivisionError), run_of(account):
        raise ZeroDivisionError
    assert account.machines == {"other": ["m-0"], "contract": []}


def test_machines_of_somebody_are_not_ended() -> None:
    """A deployment that is called like one of the suite's stops the run before it begins."""
    account = FakeAccount(contract=["m-7"])
    with pytest.raises(AssertionError, match="m-7"), run_of(account):
        pytest.fail("it began")
    assert account.machines == {"contract": ["m-7"]}
