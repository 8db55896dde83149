"""What every cloud promises about its refusals."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial

import pytest

from spotferry.ports.cloud import CloudProvider
from spotferry.types.errors import (
    CapacityError,
    ProviderError,
    ProviderUnavailable,
    SkipProvider,
    TryAgainLater,
    TryNextRegion,
    TryNextType,
    TryNextZone,
    UnknownLaunchError,
)
from spotferry.types.instance import Attempt
from tests.contract.nonsense import nonsense_at_loopback
from tests.contract.provider_contract_world import Cloud, World, an_attempt, launched, lookups, made_now


class Refusals:
    """Each cause raises the class that says what to try next, and no vendor's exception escapes."""

    def test_an_empty_pool(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """No capacity sends the placement to the next zone (region, where there are none), and bans the pool alone."""
        cloud.exhaust(cloud.candidate())
        elsewhere: tuple[type[CapacityError], ...] = (TryNextZone,)
        if not attempt.availability_zone:
            elsewhere = (TryNextZone, TryNextRegion, TryNextType)
        with pytest.raises(elsewhere) as caught:
            launched(cloud, provider, attempt)
        assert caught.value.scope in {"pool", "zone"}
        assert caught.value.ban_for > timedelta()
        assert caught.value.region == attempt.region
        assert caught.value.code
        cloud.calm()
        assert provider.create_instance(an_attempt(cloud, provider)).allocated_id

    def test_no_quota(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """A quota that is used up reaches as far as the quota: the region, or the family there."""
        cloud.use_up_quota(cloud.candidate())
        with pytest.raises((TryNextRegion, TryNextType)) as caught:
            launched(cloud, provider, attempt)
        assert caught.value.scope in {"region", "family"}

    def test_a_type_that_the_zone_does_not_sell(self, cloud: Cloud, provider: CloudProvider) -> None:
        """An offer that is in no shop is refused, and not asked about again soon."""
        with pytest.raises(CapacityError) as caught:
            launched(cloud, provider, an_attempt(cloud, provider, cloud.candidate_not_sold_there()))
        assert not isinstance(caught.value, UnknownLaunchError | TryAgainLater)
        assert caught.value.ban_for >= timedelta(minutes=3)

    def test_a_cap_below_the_price(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """A cap that the price has passed is no capacity, at that price."""
        if not cloud.takes_price_cap:
            pytest.skip("this cloud takes no price cap")
        assert attempt.launch is not None
        capped = attempt.launch.model_copy(update={"max_price_usd_hour": Decimal("0.000001")})
        with pytest.raises(CapacityError):
            launched(cloud, provider, attempt.model_copy(update={"launch": capped}))
        assert not cloud.billing(attempt)

    def test_throttled_for_a_moment(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """A call that is throttled a few times succeeds."""
        cloud.throttle(2)
        assert provider.create_instance(attempt).allocated_id
        assert len(cloud.bought(attempt)) == 1

    def test_throttled_to_the_end(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """A cloud that goes on throttling is asked again later; nothing is banned for it."""
        cloud.throttle(1000)
        before = cloud.calls()
        with pytest.raises((TryAgainLater, ProviderUnavailable)) as caught:
            provider.create_instance(attempt)
        assert not isinstance(caught.value, CapacityError) or caught.value.scope == "none"
        assert 2 <= cloud.calls() - before <= 10

    def test_an_unknown_code(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """A code that no table knows is its own class, and keeps the cloud's code."""
        cloud.fail_next("NeverSeenBefore")
        with pytest.raises(UnknownLaunchError) as caught:
            launched(cloud, provider, attempt)
        assert caught.value.code == "NeverSeenBefore"

    def test_revoked_credentials(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """Credentials that are refused everywhere skip the cloud, and prove nothing about any machine."""
        made = provider.create_instance(attempt)
        cloud.revoke_credentials()
        with pytest.raises(SkipProvider):
            provider.create_instance(an_attempt(cloud, None))
        for ask in lookups(provider, made):
            with pytest.raises(ProviderError):
                ask()

    def test_missing_credentials(self, cloud: Cloud, world: World, attempt: Attempt) -> None:
        """Without credentials the cloud is skipped, and the code says so."""
        with cloud.provider_without_credentials(world) as provider, pytest.raises(SkipProvider) as caught:
            provider.create_instance(attempt)
        assert "redential" in f"{caught.value.code} {caught.value.message}"

    def test_a_denied_region(self, cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> None:
        """A denial for one region closes that region; the next one of the same cloud is still open."""
        elsewhere = an_attempt(cloud, provider, cloud.candidate(1))
        cloud.deny_region(cloud.candidate())
        with pytest.raises(TryNextRegion) as caught:
            launched(cloud, provider, attempt)
        assert (caught.value.scope, caught.value.region) == ("region", attempt.region)
        assert provider.create_instance(elsewhere).allocated_id

    def test_a_failing_cloud_lets_no_exception_of_its_own_escape(
        self, cloud: Cloud, provider: CloudProvider, attempt: Attempt
    ) -> None:
        """Throttled for good, every method raises an error of ours."""
        made = provider.create_instance(attempt)
        cloud.throttle(10_000)
        asks: list[Callable[[], object]] = [*lookups(provider, made), partial(provider.destroy_instance, made)]
        for ask in asks:
            with pytest.raises(ProviderError):
                ask()

    def test_an_answer_that_is_none(
        self, cloud: Cloud, provider: CloudProvider, world: World, attempt: Attempt
    ) -> None:
        """What the API does not promise decides nothing and proves nothing: an error with a code, no machine gone."""
        made = made_now(provider, attempt)
        for body in cloud.nonsense:
            with nonsense_at_loopback(body) as url:
                lost = cloud.provider_at(world, url)
                with pytest.raises(ProviderUnavailable) as caught:
                    lost.create_instance(an_attempt(cloud, None))
                assert caught.value.code
                for ask in lookups(lost, made):
                    with pytest.raises(ProviderError) as refused:
                        ask()
                    assert refused.value.code

    def test_no_call_blocks_over_its_limit(self, cloud: Cloud, world: World, attempt: Attempt) -> None:
        """A service that takes the call and never answers costs no more than 20 seconds a call."""
        with cloud.provider_of_a_mute_service(world) as (provider, limit):
            asks: Sequence[Callable[[], object]] = [
                lambda: provider.create_instance(attempt),
                lambda: provider.find_instance(attempt),
            ]
            for ask in asks:
                began = datetime.now(UTC)
                with pytest.raises(ProviderUnavailable):
                    ask()
                assert datetime.now(UTC) - began <= limit
