"""Retries: as often as the deadline allows, and no longer than it."""

from collections.abc import Mapping

import pytest
from botocore.exceptions import PartialCredentialsError, ReadTimeoutError

from spotferry.providers.aws.api import CONNECT_SECONDS, READ_SECONDS, AwsApi
from spotferry.providers.retries import TOTAL_SECONDS
from spotferry.types.errors import ProviderError, ProviderUnavailable, SkipProvider
from tests.unit.providers.aws.rig import REGION, Rig, an_attempt, machine, reservations
from tests.unit.providers.fake_timing import FakeTiming

LONGEST = 20.0


class Mute:
    """A client whose service never answers: each call takes as long as the SDK waits."""

    def __init__(self, time: FakeTiming) -> None:
        self.time = time
        self.calls = 0

    def describe_instances(self, **_params: object) -> Mapping[str, object]:
        """Wait, then fail."""
        self.calls += 1
        self.time.seconds += CONNECT_SECONDS + READ_SECONDS
        raise ReadTimeoutError(endpoint_url="https://ec2.example")


def test_a_service_that_never_answers_blocks_no_longer_than_the_limit() -> None:
    """A call is repeated only while one more may end before the deadline."""
    time = FakeTiming()
    mute = Mute(time)
    with pytest.raises(ProviderUnavailable) as caught:
        AwsApi(lambda _service, _region: mute, time.timing()).begin(REGION).ec2("describe_instances")
    assert caught.value.code == "ReadTimeoutError"
    assert mute.calls == 2
    assert time.seconds <= TOTAL_SECONDS < LONGEST


def test_calls_that_belong_together_share_the_deadline() -> None:
    """A call that follows one which used the time up is not begun."""
    time = FakeTiming()
    mute = Mute(time)
    calls = AwsApi(lambda _service, _region: mute, time.timing()).begin(REGION)
    for _ in range(2):
        with pytest.raises(ProviderUnavailable):
            calls.ec2("describe_instances")
    assert mute.calls == 2
    assert time.seconds <= TOTAL_SECONDS


def test_throttling_is_retried_with_growing_pauses() -> None:
    """A throttled call is repeated, each pause up to twice the one before, and then succeeds."""
    rig = Rig()
    for _ in range(3):
        rig.stub().add_client_error("describe_instances", "RequestLimitExceeded", "slow down", 503)
    rig.stub().add_response("describe_instances", reservations(machine("i-1")))
    assert rig.api.begin(REGION).ec2("describe_instances")["Reservations"]
    assert rig.time.pauses == [0.5, 1.0, 2.0]


def test_pauses_are_jittered() -> None:
    """Callers that were throttled together do not come back together."""
    rig = Rig()
    rig.time.timing()
    timing = rig.time.timing()
    api = AwsApi(lambda _service, _region: rig.stub().client, type(timing)(timing.monotonic, timing.sleep, lambda: 0.0))
    rig.stub().add_client_error("describe_instances", "Throttling", "slow down", 400)
    rig.stub().add_response("describe_instances", {})
    api.begin(REGION).ec2("describe_instances")
    assert rig.time.pauses == [0.25]


def test_what_no_retry_mends_is_not_retried() -> None:
    """A refusal is passed on at once."""
    rig = Rig()
    rig.stub().add_client_error("describe_instances", "InvalidParameterValue", "no", 400)
    with pytest.raises(ProviderError):
        rig.api.begin(REGION).ec2("describe_instances")
    assert rig.time.pauses == []


def test_an_expired_request_is_sent_afresh_once() -> None:
    """A clock that is off for a moment costs one more call; one that stays off is a denial."""
    rig = Rig()
    rig.stub().add_client_error("run_instances", "RequestExpired", "late", 400)
    rig.stub().add_response("run_instances", {"Instances": [machine("i-1", "pending")]})
    assert rig.provider.create_instance(an_attempt()).allocated_id == "i-1"
    for _ in range(2):
        rig.stub().add_client_error("run_instances", "RequestExpired", "late", 400)
    with pytest.raises(SkipProvider):
        rig.provider.create_instance(an_attempt())
    rig.done()


def test_clients_are_made_once_a_region() -> None:
    """A client is kept per service and region."""
    made: list[tuple[str, str]] = []

    def connect(service: str, region: str) -> object:
        made.append((service, region))
        return object()

    api = AwsApi(connect)
    for region in ("us-east-1", "eu-west-1", "us-east-1"):
        api.client("ec2", region)
    assert made == [("ec2", "us-east-1"), ("ec2", "eu-west-1")]


def test_what_is_wrong_with_a_client_is_told_by_the_call() -> None:
    """A client that cannot be made is an error of ours at the call, and the time it took is not the call's."""
    time = FakeTiming()

    def connect(_service: str, _region: str) -> object:
        time.seconds += TOTAL_SECONDS
        raise PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY")

    calls = AwsApi(connect, time.timing()).begin(REGION)
    assert calls.deadline.started == TOTAL_SECONDS
    with pytest.raises(SkipProvider, match="AWS_SECRET_ACCESS_KEY"):
        calls.ec2("describe_instances")


def test_the_real_client_waits_no_longer_than_the_deadline_counts_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's own timeouts are the ones that the deadline reckons with, and it does not retry by itself."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    config = AwsApi().client("ec2", REGION).meta.config
    assert (config.connect_timeout, config.read_timeout) == (CONNECT_SECONDS, READ_SECONDS)
    assert config.retries["total_max_attempts"] == 1


def test_no_call_is_begun_that_could_end_after_the_deadline() -> None:
    """When earlier calls were slow and successful, the next one is not begun: it might hang past the limit."""
    rig = Rig()
    calls = rig.api.begin(REGION)
    rig.time.seconds += TOTAL_SECONDS - CONNECT_SECONDS - READ_SECONDS + 0.1
    with pytest.raises(ProviderUnavailable, match="no time was left"):
        calls.ec2("describe_instances")
    rig.stub().add_response("describe_instances", {})
    assert calls.again().ec2("describe_instances") is not None
