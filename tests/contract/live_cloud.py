"""What a real account has in common for the contract: nobody can steer it, and whatever was started is ended."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NoReturn, Protocol

import pytest

from spotferry.ports.cloud import CloudProvider
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Attempt, Candidate
from tests.contract.provider_contract_world import World
from tests.contract.waiting import wait_until

DEPLOYMENTS = ("contract", "two-regions", "fleet", "fleet-2")
"""The deployments that the suite's machines say they are of."""
END_SECONDS = 600.0


class _Account(Protocol):
    """What a live cloud is mixed into."""

    regions: tuple[str, str]

    def provider(self, world: World) -> CloudProvider: ...


def _no_lever(wish: str) -> NoReturn:
    pytest.skip(f"a real account cannot be told to {wish}")


class LiveCloud:
    """Every lever skips its test; `calm` ends the machines.

    Attributes:
        regions: two that have the candidate.
    """

    patience_seconds = 300.0
    regions: tuple[str, str]

    def settle(self, provider: CloudProvider, made: Attempt) -> Attempt:  # noqa: ARG002 - others ask it
        """Decided at once."""
        return made

    def calm(self: _Account) -> None:
        """End every machine that a test started."""
        end_all(self)

    def stock_up(self, machines: int) -> None:
        """It would cost money."""
        pytest.skip(f"{machines} machines of a real account would cost money")

    def exhaust(self, candidate: Candidate) -> None:  # noqa: ARG002 - as the protocol has it
        """Not here."""
        _no_lever("have no machines")

    def use_up_quota(self, candidate: Candidate) -> None:  # noqa: ARG002 - as the protocol has it
        """Not here."""
        _no_lever("have no quota")

    def slow(
        self,
        world: World,  # noqa: ARG002 - as the protocol has it
        share: float,  # noqa: ARG002 - as the protocol has it
    ) -> AbstractContextManager[tuple[CloudProvider, Callable[[], float]]]:
        """Not here."""
        _no_lever("be slow")

    def throttle(self, times: int) -> None:  # noqa: ARG002 - as the protocol has it
        """Not here."""
        _no_lever("throttle")

    def fail_next(self, code: str) -> None:  # noqa: ARG002 - as the protocol has it
        """Not here."""
        _no_lever("fail")

    def lose_answers(self, times: int) -> None:  # noqa: ARG002 - as the protocol has it
        """Not here."""
        _no_lever("lose answers")

    def hide_new_machines(self) -> None:
        """Not here."""
        _no_lever("hide machines")

    def revoke_credentials(self) -> None:
        """Not here."""
        _no_lever("refuse its own credentials")

    def deny_region(self, candidate: Candidate) -> None:  # noqa: ARG002 - as the protocol has it
        """Not here."""
        _no_lever("deny a region")

    def end_without_notice(self, attempt: Attempt) -> None:  # noqa: ARG002 - as the protocol has it
        """Not here."""
        _no_lever("take a machine back")

    def switch_off(self, attempt: Attempt) -> None:  # noqa: ARG002 - as the protocol has it
        """Not here."""
        _no_lever("switch a machine off from inside")


def end_all(cloud: _Account) -> None:
    """Order the end of every machine of the suite's deployments in the cloud's two regions."""
    for deployment in DEPLOYMENTS:
        provider = cloud.provider(World(deployment=deployment))
        for region in cloud.regions:
            for machine in provider.owned_instances(region):
                provider.destroy_instance(machine)


def machines_of(cloud: _Account) -> list[str]:
    """Ids of all that live of the suite's deployments."""
    return [
        machine.allocated_id
        for deployment in DEPLOYMENTS
        for region in cloud.regions
        for machine in cloud.provider(World(deployment=deployment)).owned_instances(region)
        if machine.state != "shutting-down"
    ]


@contextmanager
def nothing_left(cloud: _Account) -> Iterator[None]:
    """Begin only where no machine of the suite's deployments is, and end only when none is left.

    A machine that is there before is somebody's: it would be ended with ours.
    """
    there = machines_of(cloud)
    assert not there, f"{there} are of a deployment called like one of {DEPLOYMENTS}: the suite would end them"
    try:
        yield
    finally:
        try:
            end_all(cloud)
        except ProviderError as error:
            pytest.fail(f"MACHINES MAY STILL RUN: ending them failed: {error}; end {machines_of(cloud)} by hand")
        wait_until(lambda: not machines_of(cloud), END_SECONDS)
