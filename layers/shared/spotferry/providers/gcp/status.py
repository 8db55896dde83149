"""What Compute Engine says about the end of a machine, from the operation that ended it."""

from google.cloud.compute_v1 import Instance as Machine

from spotferry.providers.ends import Cause, is_the_clouds_doing, reason_code
from spotferry.providers.gcp.states import OPERATIONS, STATES
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Instance

_LIVING = frozenset({"", "pending", "running"})


def is_ending(machine: Machine) -> bool:
    """The machine is stopped or on its way out, so that its operations say why."""
    return STATES.get(machine.status, "") not in _LIVING


def ended(instance: Instance) -> ProviderEvent | None:
    """Why the machine ends or has ended, from the reason that came with its state; None while it lives."""
    if instance.state in _LIVING or not instance.allocated_id:
        return None
    code = reason_code(instance.cloud_reason) if isinstance(instance, Attempt) else ""
    until = instance.billed_until if isinstance(instance, Attempt) else None
    return ProviderEvent(
        instance_id=instance.allocated_id,
        fault_code=code or instance.state,
        marked_for_termination=is_the_clouds_doing(cause_of(instance)),
        termination_time=int(until.timestamp()) if until else 0,
    )


def cause_of(instance: Instance) -> Cause | None:
    """Who ended the machine, as far as its attempt tells."""
    if not isinstance(instance, Attempt):
        return None
    if instance.ended_by == "launch":
        return Cause.NEVER_STARTED
    return OPERATIONS.get(reason_code(instance.cloud_reason))
