"""What adapters are asked for, checked alike for every cloud."""

import pytest

from spotferry.providers.asked import described, disk_size, launch_of
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
