"""A machine that is to end is ended."""

from dataclasses import dataclass

from spotferry.domain.asking import is_asked_for
from spotferry.ports.cloud import Clouds
from spotferry.types.errors import NotFound
from spotferry.usecases.launch import AskCloud, gone_unseen, would_be_visible


@dataclass(frozen=True, slots=True)
class DestroyInstance:
    """Orders the end of a machine; that it is gone is heard from the cloud, by its event or the next poll."""

    ask: AskCloud
    clouds: Clouds

    def __call__(self, job_id: str, instance_id: str) -> None:
        """Order the end of one machine, if the records still want that; safe to repeat.

        Raises:
            ProviderError: the cloud did not take the order; try again.
        """
        change = self.ask.change
        try:
            view = change.store.load(job_id, instance_id)
        except NotFound:
            return
        attempt = view.attempts[instance_id]
        if attempt.is_gone or not attempt.ending:
            return
        provider = self.clouds.provider(attempt.provider)
        if attempt.allocated_id:
            provider.destroy_instance(attempt)
            return
        if is_asked_for(attempt, change.clock()):
            return  # a machine may still come of it; its answer, or the poll, orders its end
        machine = provider.find_instance(attempt)
        if machine is not None:
            provider.destroy_instance(machine)
            self.ask.record(job_id, attempt, machine)
        elif would_be_visible(view, attempt, change.clock()):
            provider.destroy_instance(attempt)  # a launch that came to nothing may have left more than machines
            change(job_id, gone_unseen(attempt), instance_id)
