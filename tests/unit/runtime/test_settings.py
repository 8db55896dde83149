"""A function's environment, typed and checked."""

from datetime import timedelta

import pytest

from spotferry.runtime.settings import Settings
from spotferry.types import Misconfigured

NAMES = ("DEPLOYMENT", "JOBS_TABLE", "INSTANCES_TABLE", "CHECKPOINTS_TABLE", "TIMELINE_TABLE", "PARAMETER_PREFIX")
ENVIRONMENT = {"AWS_REGION": "eu-west-1", "PATH": "/bin", **{name: name.lower() for name in NAMES}}


def test_the_environment_is_read() -> None:
    """Names as the template sets them; what is not set has its default."""
    settings = Settings.from_environment({**ENVIRONMENT, "LEASE_SECONDS": "8", "BUCKET": ""})
    assert (settings.region, settings.jobs_table, settings.bucket) == ("eu-west-1", "jobs_table", "")
    assert settings.pace.lease == timedelta(seconds=8)
    assert settings.policy.boot == timedelta(minutes=10)


def test_silence_is_longer_than_the_lease() -> None:
    """By the time the broker gives a silent machine up, its agent has ended it."""
    for lease in ("2", "900"):
        settings = Settings.from_environment({**ENVIRONMENT, "LEASE_SECONDS": lease})
        assert settings.policy.silence > settings.pace.lease


def test_the_region_may_come_from_the_default() -> None:
    """Either of the two names that tools use."""
    environment = {**ENVIRONMENT, "AWS_DEFAULT_REGION": "us-east-1"}
    assert Settings.from_environment(environment).region == "eu-west-1"
    del environment["AWS_REGION"]
    assert Settings.from_environment(environment).region == "us-east-1"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_missing_is_told(name: str) -> None:
    """The operator reads which variable it is, in the environment's own spelling."""
    environment = {key: value for key, value in ENVIRONMENT.items() if key != name}
    with pytest.raises(Misconfigured, match=name):
        Settings.from_environment(environment)


@pytest.mark.parametrize("value", ["soon", "0", "-3"])
def test_a_duration_that_is_none_is_told(value: str) -> None:
    """Durations are positive numbers of seconds."""
    with pytest.raises(Misconfigured, match="HOLD_SECONDS"):
        Settings.from_environment({**ENVIRONMENT, "HOLD_SECONDS": value})


def test_what_only_some_functions_get_is_asked_for_when_needed() -> None:
    """A function without a bucket works until it needs one, and then says so."""
    settings = Settings.from_environment(ENVIRONMENT)
    with pytest.raises(Misconfigured, match="BUCKET"):
        settings.need("bucket")
    assert Settings.from_environment({**ENVIRONMENT, "BUCKET": "b"}).need("bucket") == "b"


@pytest.mark.parametrize(
    ("heartbeat", "grace", "cancel"), [("120", "30", "120"), ("60", "300", "120"), ("5", "5", "20")]
)
def test_a_cancel_leaves_time_for_heartbeat_and_grace(heartbeat: str, grace: str, cancel: str) -> None:
    """However the seconds are set, a cancelled task hears of it and has its grace before its machine is ended."""
    given = {"HEARTBEAT_SECONDS": heartbeat, "GRACE_SECONDS": grace, "CANCEL_SECONDS": cancel}
    settings = Settings.from_environment({**ENVIRONMENT, **given})
    assert settings.policy.cancel > settings.pace.quiet + settings.pace.grace
    assert settings.policy.cancel >= timedelta(seconds=float(cancel))
