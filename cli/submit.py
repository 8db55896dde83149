"""`spotferry submit`: a job file and its work directory become a job."""

import tempfile
import uuid
from pathlib import Path
from typing import BinaryIO

import click

from cli.api import Api, broker
from cli.errors import UsageProblem
from cli.given import KEY
from cli.logs import follow
from cli.output import Json, money, place, print_json, say, size
from cli.packing import Packed, pack
from cli.progress import Progress
from cli.settings import settings
from cli.transfer import upload
from spotferry.types import InvalidJobFile, JobFile, init_job_file
from spotferry.types.words import counted

MAX_PATH_CHARS = 1024


@click.command()
@click.argument("job_file", metavar="JOB.yml", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the broker's answer as one JSON document.")
@click.option("-f", "--follow", "following", is_flag=True, help="Then print the job's log until it ends.")
@click.option("--idempotency-key", metavar="KEY", type=KEY, help="The same key and job file is the same job.")
def submit(job_file: Path, idempotency_key: str | None, *, as_json: bool, following: bool) -> None:
    """Hand in a job file and its work directory; prints the job's id.

    Files that .gitignore or .spotferryignore name stay here, and so do .git and a local cloud's .spotferry, however
    deep they lie. Owners and times of files do not travel; permissions and links inside do.
    """
    if as_json and following:
        raise UsageProblem("--follow: does not go with --json, which prints one document")
    key = uuid.uuid4().hex if idempotency_key is None else idempotency_key
    spec = read_job(job_file)
    api = broker()
    body = {
        "job_file": job_file.read_text(encoding="utf-8-sig"),
        "job_file_path": str(job_file.absolute()).encode("utf-8", "replace").decode()[-MAX_PATH_CHARS:],
        "upload": send_work_dir(api, job_file, spec),
    }
    answer = api.request("POST", "/jobs", json=body, headers={"Idempotency-Key": key})
    if as_json:
        print_json(answer)
        return
    click.echo(answer["job"]["job_id"])
    _say_chosen(answer.get("plan") or {})
    if following:
        click.get_current_context().exit(follow(api, str(answer["job"]["job_id"])))


def read_job(path: Path) -> JobFile:
    """The job file; a file that is wrong ends the command with all that is wrong in it."""
    try:
        return init_job_file(path)
    except InvalidJobFile as error:
        raise UsageProblem(str(error)) from error


def send_work_dir(api: Api, job_file: Path, spec: JobFile) -> Json | None:
    """Bring the work directory to the bucket, unless the same bytes are there; None when the job has none."""
    if not spec.work_dir:
        return None
    work_dir = job_file.parent / spec.work_dir
    if not work_dir.is_dir():
        what = "is not a directory" if work_dir.exists() else "does not exist"
        raise UsageProblem(f"{job_file}: work_dir: {work_dir} {what}; it is looked for beside the job file")
    with tempfile.TemporaryFile(prefix="spotferry-") as archive:
        packed = pack(work_dir, archive, Progress("packing").add)
        _say_packed(work_dir, packed)
        body: dict[str, str | int] = {"sha256": packed.sha256, "size_bytes": packed.size_bytes}
        _send(api, archive, body)
    return body


def _send(api: Api, archive: BinaryIO, body: dict[str, str | int]) -> None:
    answer = api.request("POST", "/uploads", json=body, repeatable=True)
    if answer.get("exists"):
        return
    upload(archive, int(body["size_bytes"]), str(answer["url"]), answer.get("headers") or {}, settings())


def _say_packed(work_dir: Path, packed: Packed) -> None:
    left_out = f"; {len(packed.left_out)} left out by ignore rules" if packed.left_out else ""
    say(f"{work_dir}: {counted(packed.files, 'file')}, {size(packed.size_bytes)} packed{left_out}")
    if packed.unpackable:
        say(f"not packed, being no files: {', '.join(packed.unpackable)}")


def _say_chosen(plan: Json) -> None:
    chosen = plan.get("chosen")
    if chosen:
        say(f"cheapest that fits now: {place(chosen)} at {money(chosen['total_usd_hour'])} an hour with its disk")
    elif plan.get("why"):
        say(f"no machine yet: {plan['why']}")
