"""The use cases behind queues, bus and schedule."""

from functools import partial

from spotferry.providers import registry
from spotferry.runtime.agent_bundle import agent_bundle
from spotferry.runtime.changes import Changes
from spotferry.runtime.wiring import utc_now, wiring
from spotferry.usecases.check_launch import CheckLaunch
from spotferry.usecases.create_instance import AgentBundle, CreateInstance
from spotferry.usecases.destroy_instance import DestroyInstance
from spotferry.usecases.handle_interruption import HandleInterruption
from spotferry.usecases.poll_status import PollStatus
from spotferry.usecases.reap import Reap


class Machines(Changes):
    """What is done about machines."""

    @property
    def create_instance(self) -> CreateInstance:
        """Placements."""
        bundle = agent_bundle()
        return CreateInstance(
            deployment=self._wiring.settings.deployment,
            broker_url=self._wiring.settings.need("broker_url"),
            agent=AgentBundle(bundle.sha256, bundle.content),
            change=self.change,
            plan_job=self._wiring.plan_job,
            ask=self.ask_cloud,
            clouds=self._wiring.clouds,
            regions=self._wiring.parameters,
            objects=self._wiring.objects,
        )

    @property
    def check_launch(self) -> CheckLaunch:
        """Launches without an answer."""
        return CheckLaunch(self.ask_cloud, self._wiring.clouds)

    @property
    def destroy_instance(self) -> DestroyInstance:
        """Machines that are to end."""
        return DestroyInstance(self.ask_cloud, self._wiring.clouds)

    @property
    def handle_interruption(self) -> HandleInterruption:
        """What clouds announce."""
        return self.handle_interruption_of("")

    def handle_interruption_of(self, cloud: str) -> HandleInterruption:
        """What this cloud announces, and no other; "" for any cloud."""
        return HandleInterruption(self.ask_cloud, partial(registry.parse_notice, cloud=cloud))

    @property
    def poll_status(self) -> PollStatus:
        """The sweep."""
        return PollStatus(self.ask_cloud, self._wiring.clouds)

    @property
    def reap(self) -> Reap:
        """The end of machines that nobody owns."""
        wiring = self._wiring
        return Reap(wiring.store, wiring.clouds, utc_now, wiring.settings.policy.visibility, wiring.reaper_rounds)


def machines() -> Machines:
    """The function's own, over its own wiring."""
    return Machines(wiring())
