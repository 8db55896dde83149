"""Addresses of jobs and machines at the broker."""

from urllib.parse import quote

from cli.errors import UsageProblem


def job_path(job_id: str, below: str = "") -> str:
    """`/jobs/ID` or what is below it.

    Raises:
        UsageProblem: the id is blank.
    """
    return f"/jobs/{_safe('JOB', job_id)}{f'/{below}' if below else ''}"


def instance_path(instance_id: str, below: str) -> str:
    """What is below `/instances/ID`.

    Raises:
        UsageProblem: the id is blank.
    """
    return f"/instances/{_safe('INSTANCE', instance_id)}/{below}"


def _safe(what: str, text: str) -> str:
    if not text.strip() or text in {".", ".."}:
        raise UsageProblem(f"{what}: {text!r} is not an id")
    return quote(text, safe="")
