"""What adapters are asked for, checked alike for every cloud."""

from datetime import UTC, datetime, timedelta

import pytest

from spotferry.providers.asked import described, disk_size, is_young, launch_of
from spotferry.types.errors import InvalidInput, LaunchRefused
from spotferry.types.instance import Instance
from tests.builders import an_attempt


def test_a_disk_smaller_than_its_image_is_refused_with_the_size_that_fits() -> None:
    """The refusal names both sizes and what to ask for, and closes nothing to other jobs; a size nobody named grows."""
    with pytest.raises(
        LaunchRefused, match=r"34 GB is smaller than the image ubuntu, .* 35 GB: ask for disk_gb: 35"
    ) as caught:
        disk_size("ubuntu", 35, 34, "us-east-1", is_fixed=True)
    assert caught.value.scope == "none"
    assert disk_size("ubuntu", 35, 35, "us-east-1", is_fixed=True) == 35
    assert disk_size("ubuntu", 35, 34, "us-east-1", is_fixed=False) == 35


def test_only_an_attempt_with_a_fixed_request_is_launched() -> None:
    """A launch that was not saved before could not be repeated to the letter."""
    with pytest.raises(TypeError, match="is fixed"):
        launch_of(Instance(cedana_id="i-1"))
    with pytest.raises(TypeError, match="is fixed"):
        launch_of(an_attempt(1, launch=None))


def test_each_region_is_looked_at_once_and_the_order_stays() -> None:
    """Machines of two regions come back as they were given; a filter keeps those of its state."""
    asked: list[str] = []

    def see(region: str, here: list[Instance]) -> list[Instance]:
        asked.append(region)
        state = "running" if region == "r1" else "terminated"
        return [machine.model_copy(update={"state": state}) for machine in here]

    machines = [Instance(cedana_id=f"i-{n}", region=region) for n, region in enumerate(("r2", "r1", "r2"))]
    assert [i.cedana_id for i in described(machines, "", see)] == ["i-0", "i-1", "i-2"]
    assert asked == ["r1", "r2"]
    assert [i.cedana_id for i in described(machines, "terminated", see)] == ["i-0", "i-2"]
    with pytest.raises(InvalidInput):
        described(machines, "tired", see)


def test_a_machine_is_young_by_the_latest_that_is_known_of_its_making() -> None:
    """Its launch counts before its order, an order before nothing; what nobody dated is not young."""
    now, limit = datetime(2026, 11, 30, 12, 0, tzinfo=UTC), timedelta(minutes=5)
    long_ago, just_now = now - limit, now - limit + timedelta(seconds=1)
    asked = an_attempt(1, launched_at=None, requested_at=just_now)
    assert is_young(asked, now, limit)
    assert not is_young(asked.model_copy(update={"launched_at": long_ago}), now, limit)
    assert not is_young(asked.model_copy(update={"requested_at": long_ago, "created_at": just_now}), now, limit)
    assert is_young(Instance(created_at=just_now), now, limit)
    assert not is_young(Instance(created_at=long_ago), now, limit)
    assert not is_young(Instance(), now, limit)
