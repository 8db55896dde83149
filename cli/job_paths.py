"""Addresses of jobs and machines at the broker."""


def job_path(job_id: str, below: str = "") -> str:
    """`/jobs/ID` or what is below it."""
    return f"/jobs/{job_id}{f'/{below}' if below else ''}"


def instance_path(instance_id: str, below: str) -> str:
    """What is below `/instances/ID`."""
    return f"/instances/{instance_id}/{below}"
