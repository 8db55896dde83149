"""`spotferry checkpoint`, `checkpoints` and `restore`."""

import click

from cli.api import Api, broker
from cli.errors import Failed
from cli.given import ID
from cli.job_paths import job_path
from cli.job_view import print_checkpoints
from cli.jobs import POLL_SECONDS, new_key, print_state
from cli.output import Json, print_json, say
from cli.settings import settings
from spotferry.types import FINAL_STATES


@click.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option("--wait", is_flag=True, help="Return once the checkpoint is there; status 1 if it fails.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def checkpoint(job_id: str, *, wait: bool, as_json: bool) -> None:
    """Have a running job checkpointed; prints the number that the checkpoint has, or will have."""
    api = broker()
    job = api.request("POST", job_path(job_id, "checkpoint"), repeatable=True)["job"]
    number = int(job["checkpoint_wanted"] or job["checkpoint"])
    if wait:
        job = _wait_for(api, job, number)
    if as_json:
        print_json({"checkpoint": number, "job": job})
        return
    click.echo(str(number))
    say(f"checkpoint {number} is {'there' if int(job['checkpoint']) >= number else 'on its way'}")


def _wait_for(api: Api, job: Json, number: int) -> Json:
    """The job, once it has that checkpoint.

    Raises:
        Failed: it will not have it: the checkpoint failed, or the job ended before.
    """
    job_id = str(job["job_id"])
    while int(job["checkpoint"]) < number:
        if job["state"] in FINAL_STATES:
            raise Failed(f"checkpoint {number} was not made: job {job_id} is {job['state']}: {job['reason']}")
        if not job["checkpoint_wanted"]:
            raise Failed(f"checkpoint {number} was not made: {_why_not(api, job_id)}")
        settings().sleep(POLL_SECONDS)
        job = api.request("GET", job_path(job_id))
    return job


def _why_not(api: Api, job_id: str) -> str:
    entries = api.request("GET", job_path(job_id, "timeline"))["entries"]
    failures = [str(entry["message"]) for entry in entries if entry["event"] == "checkpoint_failed"]
    return failures[-1] if failures else "the broker gave it up"


@click.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def checkpoints(job_id: str, *, as_json: bool) -> None:
    """List a job's checkpoints."""
    answer = broker().request("GET", job_path(job_id, "checkpoints"))
    if as_json:
        print_json(answer)
    else:
        print_checkpoints(answer["checkpoints"])


@click.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option("--checkpoint", "number", type=click.IntRange(min=1), help="Go on from this one; the newest unless said.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def restore(job_id: str, number: int | None, *, as_json: bool) -> None:
    """Go on from a checkpoint of a job that is over, in a new job; prints the new job's id."""
    wish = {} if number is None else {"checkpoint": number}
    answer = broker().request("POST", job_path(job_id, "restore"), json=wish, headers=new_key())
    print_state(answer["job"], as_json=as_json)
