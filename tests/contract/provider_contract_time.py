"""What every cloud promises about a launch's time: whoever asks has the attempt to itself for no longer."""

from contextlib import suppress

import pytest

from spotferry.domain.asking import LONGEST_CALL
from spotferry.ports.cloud import CloudProvider
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Attempt
from tests.contract.provider_contract_world import Cloud, World
from tests.contract.waiting import wait_until

SHARES = (1.0, 0.7, 0.55, 0.45, 0.3, 0.2, 0.1)
"""How long each call takes, of the longest that one may take."""


def launch_in_time(cloud: Cloud, attempt: Attempt, share: float) -> None:
    """Launch, each call as slow as said; whatever comes of it, it is over in time."""
    with cloud.slow(World(), share) as (provider, monotonic):
        began = monotonic()
        with suppress(ProviderError):
            provider.create_instance(attempt)
        assert monotonic() - began <= LONGEST_CALL.total_seconds()


class InTime:
    """A launch has one deadline: the purchase, the look at what is there, and the end of what came to nothing."""

    @pytest.mark.parametrize("share", SHARES)
    def test_a_slow_launch_is_over_in_time_and_loses_nothing(
        self, cloud: Cloud, provider: CloudProvider, attempt: Attempt, share: float
    ) -> None:
        """However slow the cloud is, also to show what it made before; whoever asks later gets that one machine."""
        launch_in_time(cloud, attempt, share)
        launch_in_time(cloud, attempt, share)
        kept = provider.create_instance(attempt).allocated_id
        wait_until(lambda: list(cloud.billing(attempt)) == [kept], cloud.patience_seconds)
        provider.destroy_instance(attempt.model_copy(update={"allocated_id": kept}))

    @pytest.mark.parametrize("share", SHARES)
    def test_a_slow_refusal_is_over_in_time(self, cloud: Cloud, attempt: Attempt, share: float) -> None:
        """What a refused launch leaves is cleared away within the same time, or left to whoever asks next."""
        cloud.exhaust(cloud.candidate())
        launch_in_time(cloud, attempt, share)
        assert not cloud.billing(attempt)

    @pytest.mark.parametrize("share", SHARES)
    def test_a_slow_launch_that_is_throttled_is_over_in_time(
        self, cloud: Cloud, attempt: Attempt, share: float
    ) -> None:
        """Repeats and their pauses count as well."""
        cloud.throttle(3)
        launch_in_time(cloud, attempt, share)
