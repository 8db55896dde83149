"""What is found of a region of Paperspace."""

from datetime import UTC, datetime

import pytest

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.opening import CheckContext, Finding, Level
from spotferry.providers.paperspace import check, credentials
from spotferry.providers.paperspace.check import PaperspaceCheck
from spotferry.providers.rest import RestApi
from spotferry.types import Misconfigured
from tests.unit.providers.replay import Answer, ReplayedPool, replayed

NETWORK = RegionSettings(provider="paperspace", region="NY2", network={"network_id": "n1"})


@pytest.fixture
def pool() -> ReplayedPool:
    """Paperspace as it should be."""
    made = ReplayedPool()
    made.answer("/machines", Answer({"hasMore": False, "items": []}))
    made.answer("/private-networks/n1", Answer({"id": "n1", "region": "ny2"}))
    return made


def found(pool: ReplayedPool) -> list[Finding]:
    """The findings."""
    return list(PaperspaceCheck(replayed(pool, "https://api.paperspace.com/v1", "k1"))(NETWORK))


def test_key_and_network_are_looked_at(pool: ReplayedPool) -> None:
    """Both are well; that Paperspace tells nothing of capacity is said."""
    findings = found(pool)
    assert [finding.level for finding in findings] == [Level.OK, Level.OK, Level.NOTE]
    assert pool.paths() == ["/v1/machines", "/v1/private-networks/n1"]
    assert pool.asked[0].headers["Authorization"] == "Bearer k1"


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        ("/machines", Answer({"code": "unauthorized", "message": "no"}, 401), "does not take the key: 401"),
        ("/private-networks", Answer({"code": "not_found", "message": "no"}, 404), "n1 is not to be had: 404"),
        ("/private-networks", Answer({"id": "n1", "region": "ca1"}), "n1 is in ca1, not in NY2"),
    ],
)
def test_what_is_wrong_is_a_problem(pool: ReplayedPool, path: str, answer: Answer, words: str) -> None:
    """In words, with what the cloud said."""
    pool.answer_first(path, answer)
    (problem,) = [finding for finding in found(pool) if finding.level is Level.PROBLEM]
    assert words in problem.what


def test_a_key_that_is_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator reads where to put it; the environment's own key comes first."""
    monkeypatch.delenv(credentials.VARIABLE, raising=False)
    asked: list[str] = []

    def missing(name: str) -> str:
        asked.append(name)
        raise Misconfigured(f"there is no secret {name}")

    context = CheckContext("test", "us-east-1", lambda: datetime.now(UTC), missing)
    (finding,) = check.build_check(context)(NETWORK)
    assert (finding.level, finding.what) == (Level.PROBLEM, "there is no secret paperspace/api-key")
    monkeypatch.setenv(credentials.VARIABLE, "k2")
    made = check.build_check(context)
    assert isinstance(made, PaperspaceCheck)
    assert isinstance(made._api, RestApi)
    assert made._api.token is not None
    assert made._api.token() == "k2"
    assert asked == ["paperspace/api-key"]
