"""Whether a machine that carries the deployment's tags belongs to anybody, by the records."""

from spotferry.types.instance import Attempt, Instance
from spotferry.types.job import Job


def is_of(machine: Instance, attempt: Attempt) -> bool:
    """The machine is the attempt's, or may be: of a launch whose answer is not saved yet nobody knows the id."""
    return attempt.allocated_id in ("", machine.allocated_id)


def why_nobodys(machine: Instance, attempt: Attempt | None, job: Job | None) -> str:
    """Why nobody owns the machine, in words; "" when somebody does.

    Args:
        machine: as its cloud lists it.
        attempt: the record that the machine leads to, read consistently after the listing, since the record of a launch
            is older than its machine; None when there is none.
        job: the attempt's job, read after the attempt; None when there is none.
    """
    if attempt is None:
        return "there is no record of it"
    if attempt.is_gone:
        return f"its attempt {attempt.cedana_id} was closed at {attempt.gone_at:%Y-%m-%d %H:%M:%SZ}"
    if not is_of(machine, attempt):
        return f"its attempt {attempt.cedana_id} has another machine, {attempt.allocated_id}"
    if job is None:
        return f"there is no record of its job {attempt.job_id}"
    if attempt.cedana_id not in job.open_attempts:
        return f"its job {attempt.job_id} does not count it among its machines"
    return ""
