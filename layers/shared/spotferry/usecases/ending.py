"""What the cloud tells about the end of a machine: what it bills depends on that."""

from datetime import UTC, datetime

from spotferry.domain import events as e
from spotferry.ports.cloud import Clouds
from spotferry.types.errors import SpotferryError
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Instance


def gone(machine: Instance, instance_id: str, said: ProviderEvent | None, at: datetime | None = None) -> e.MachineGone:
    """The end of a machine as its cloud describes it.

    Args:
        machine: as described.
        instance_id: the attempt.
        said: what the cloud says about the end beside the description.
        at: when its end was announced; counts where neither has a time.
    """
    if said is not None and said.termination_time:
        at = datetime.fromtimestamp(said.termination_time, UTC)
    if not isinstance(machine, Attempt):
        return e.MachineGone(instance_id, billed_until=at)
    return e.MachineGone(instance_id, machine.cloud_reason, machine.billed_until or at, machine.ended_by)


def ask_end(clouds: Clouds, attempt: Attempt, heard: e.MachineGone) -> e.MachineGone:
    """The end that was heard of, with who ended it and when as the cloud tells; as it was heard where the cloud does
    not tell, or cannot be asked.
    """
    try:
        provider = clouds.provider(attempt.provider)
        machines = provider.describe_instance([attempt], "")
        said = provider.get_instance_statuses(machines).get(attempt.cedana_id)
    except SpotferryError:
        return heard
    told = gone(machines[0], attempt.cedana_id, said, heard.billed_until)
    return e.MachineGone(told.instance_id, told.reason or heard.reason, told.billed_until, told.ended_by)
