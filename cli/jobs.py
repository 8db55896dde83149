"""`spotferry list`, `show`, `cancel` and `retry`."""

import secrets
from collections.abc import Iterator
from itertools import islice

import click

from cli.api import Api, broker
from cli.given import ID
from cli.job_paths import job_path
from cli.job_view import print_job, print_jobs
from cli.output import Json, print_json, say
from cli.settings import settings
from spotferry.types import FINAL_STATES, JobState

POLL_SECONDS = 1.0
PAGE = 100
DEFAULT_LIMIT = 20


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="All jobs, not only the newest.")
@click.option(
    "--state",
    type=click.Choice([state.value for state in JobState], case_sensitive=False),
    help="Only jobs in this state.",
)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=DEFAULT_LIMIT, show_default=True, help="At most so many."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_jobs(state: str | None, limit: int, *, everything: bool, as_json: bool) -> None:
    """List jobs, newest first."""
    most = None if everything else limit
    page = min(PAGE, most) if most and not state else PAGE
    jobs = list(islice(_jobs(broker(), state, page), most))
    if as_json:
        print_json({"jobs": jobs})
    else:
        print_jobs(jobs)


def _jobs(api: Api, state: str | None, page: int) -> Iterator[Json]:
    """Jobs in this state, newest first, a page at a time as they are asked for."""
    params: dict[str, str | int] = {"limit": page}
    while True:
        answer = api.request("GET", "/jobs", params=params)
        yield from (job for job in answer["jobs"] if state is None or job["state"] == state)
        if not answer.get("cursor"):
            return
        params["cursor"] = answer["cursor"]


@click.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option("--json", "as_json", is_flag=True, help="Print the job and its timeline as one JSON document.")
def show(job_id: str, *, as_json: bool) -> None:
    """Show one job: its state and why, its machines and what each cost, and what happened."""
    api = broker()
    job = api.request("GET", job_path(job_id))
    entries = api.request("GET", job_path(job_id, "timeline"))["entries"]
    if as_json:
        print_json({**job, "timeline": entries})
    else:
        print_job(job, entries)


@click.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option("--wait", is_flag=True, help="Return once the job has ended.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def cancel(job_id: str, *, wait: bool, as_json: bool) -> None:
    """Stop a job: its task gets a moment to end, its machine goes."""
    api = broker()
    job = api.request("POST", job_path(job_id, "cancel"), repeatable=True)["job"]
    if wait:
        job = _wait_until_final(api, job)
    print_state(job, as_json=as_json)


@click.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def retry(job_id: str, *, as_json: bool) -> None:
    """Run a held job again on its machine, or a finished one as a new job; prints the id of the job that runs."""
    answer = broker().request("POST", job_path(job_id, "retry"), headers=new_key())
    print_state(answer["job"], as_json=as_json)


def _wait_until_final(api: Api, job: Json) -> Json:
    while job["state"] not in FINAL_STATES:
        settings().sleep(POLL_SECONDS)
        job = api.request("GET", job_path(str(job["job_id"])))
    return job


def new_key() -> dict[str, str]:
    """The header that makes an order for a new job safe to repeat."""
    return {"Idempotency-Key": secrets.token_hex(16)}


def print_state(job: Json, *, as_json: bool) -> None:
    """The job's id on stdout, where it is and why on stderr."""
    if as_json:
        print_json({"job": job})
        return
    click.echo(job["job_id"])
    reason = f": {job['reason']}" if job.get("reason") else ""
    say(f"{job['state']}{reason}")
