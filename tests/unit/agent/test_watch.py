"""Notices from the metadata service."""

import urllib.error
from collections.abc import Iterator

import pytest

from spotferry.agent.ec2_metadata import Ec2Metadata
from spotferry.agent.watch import AwsWatcher, Notice, Watch, watcher_of
from tests.unit.agent.clocks import ManualClock
from tests.unit.agent.fake_broker import FakeBroker


@pytest.fixture
def service() -> Iterator[FakeBroker]:
    """A metadata service."""
    with FakeBroker({}, instance_id="i-1", token="t") as fake:
        yield fake


def watcher_at(service: FakeBroker, clock: ManualClock) -> AwsWatcher:
    """EC2's watcher."""
    return AwsWatcher({"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.url + "/"}, clock)


def test_notices_are_read(service: FakeBroker) -> None:
    """No document is no notice; an action is a take-back with its time; a recommendation is a rebalance."""
    watcher = watcher_at(service, ManualClock())
    assert watcher() == []
    service.imds["spot/instance-action"] = {"action": "stop", "time": "2030-01-01T00:00:00Z"}
    service.imds["events/recommendations/rebalance"] = {"noticeTime": "2030-01-02T00:00:00Z"}
    assert watcher() == [
        Notice("take_back", "stop", "2030-01-01T00:00:00Z"),
        Notice("rebalance", "rebalance-recommendation", "2030-01-02T00:00:00Z"),
    ]


def test_session_is_renewed_when_refused_and_by_age(service: FakeBroker) -> None:
    """A session that the service no longer knows is replaced in the same look."""
    clock = ManualClock()
    watcher = watcher_at(service, clock)
    metadata = watcher._metadata
    assert watcher() == []
    metadata._token = "old"
    assert watcher() == []
    assert metadata._token == "session"
    metadata._token = "old"
    clock.now += Ec2Metadata.TOKEN_SECONDS / 2
    metadata._read = lambda path: b"[]" if path else b""  # type: ignore[method-assign]  # what counts is that the token was renewed before
    with pytest.raises(ValueError, match="not a JSON object"):
        watcher()
    assert metadata._token == "session"


def test_other_errors_are_no_notice(service: FakeBroker) -> None:
    """A service that fails says nothing about the machine."""
    watcher = watcher_at(service, ManualClock())

    def failing(path: str) -> bytes:
        raise urllib.error.HTTPError(path, 500, "", None, None)  # type: ignore[arg-type]  # as urllib makes it

    watcher._metadata._read = failing  # type: ignore[method-assign]  # the service has no such lever
    with pytest.raises(urllib.error.HTTPError):
        watcher()


def test_each_notice_is_told_once_and_silence_is_not_one() -> None:
    """A standing notice is told once, another one again; a service that does not answer is looked at again."""
    first, second = Notice("take_back", "terminate", "t1"), Notice("take_back", "terminate", "t2")
    answers: list[list[Notice] | None] = [None, None, [], [first], [first], [first, second]]
    told: list[Notice] = []

    def watcher() -> list[Notice]:
        answer = answers.pop(0)
        if answer is None:
            raise OSError("no route")
        return answer

    watch = Watch(watcher, told.append, ManualClock())
    while answers:
        watch.look()
    assert told == [first, second]
    assert first.data() == {"kind": "take_back", "code": "terminate", "deadline": "t1"}


def test_cloud_without_a_watcher_is_not_watched() -> None:
    """Its notices come to the broker only."""
    assert watcher_of("paperspace", ManualClock()) is None
    assert isinstance(watcher_of("aws", ManualClock()), AwsWatcher)
