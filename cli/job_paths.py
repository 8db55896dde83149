"""Addresses of jobs and machines at the broker."""

import re

from cli.errors import UsageProblem
from spotferry.types.words import shown

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


def job_path(job_id: str, below: str = "") -> str:
    """`/jobs/ID` or what is below it.

    Raises:
        UsageProblem: it is not an id.
    """
    return f"/jobs/{_safe('JOB', job_id)}{f'/{below}' if below else ''}"


def instance_path(instance_id: str, below: str) -> str:
    """What is below `/instances/ID`.

    Raises:
        UsageProblem: it is not an id.
    """
    return f"/instances/{_safe('INSTANCE', instance_id)}/{below}"


def checked_job_id(text: str) -> str:
    """A job's id, where it is no part of an address.

    Raises:
        UsageProblem: it is not one.
    """
    return _safe("JOB", text)


def _safe(what: str, text: str) -> str:
    if not _ID.fullmatch(text):
        raise UsageProblem(f"{what}: {shown(text)} is not an id; `spotferry list` and `spotferry instances` show them")
    return text
