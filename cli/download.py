"""`spotferry download`: a job's outputs, checked byte by byte."""

import os
import tempfile
from pathlib import Path

import click

from cli.api import broker
from cli.errors import Failed
from cli.given import ID
from cli.job_paths import job_path
from cli.output import Json, print_json, say, size
from cli.settings import settings
from cli.transfer import fetch
from cli.unpacking import Unpacked, unpack
from spotferry.types.words import counted


@click.command()
@click.argument("job_id", metavar="JOB", type=ID)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the outputs, made if need be [default: a new one named after the job].",
)
@click.option("--json", "as_json", is_flag=True, help="Print the list of files as one JSON document.")
def download(job_id: str, into: Path | None, *, as_json: bool) -> None:
    """Fetch a job's outputs, and check each file against the digest that was taken on the machine.

    Files of the same name in the folder are replaced; nothing is written before everything was checked, and nothing
    outside the folder: named pipes and links that lead out of it are left out, and named.
    """
    answer = broker().request("GET", job_path(job_id, "outputs"))
    folder = into if into is not None else Path(f"outputs-{job_id}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unpacked = _bring(answer, folder)
    except OSError as error:
        raise Failed(f"the outputs cannot be written to {folder}: {error.strerror or error}") from error
    files = unpacked.files
    for name in unpacked.skipped:
        say(f"{name} was left out: it is no plain file or folder, or a link that leads out of {folder}")
    missed = answer.get("missed") or []
    if missed:
        say(f"nothing matched: {', '.join(missed)}")
    if as_json:
        print_json({"folder": str(folder), "files": files, "skipped": unpacked.skipped, "missed": missed})
        return
    for file in files:
        click.echo(os.fsencode(folder / str(file["path"])))  # as bytes: a name need not be text
    say(f"{counted(len(files), 'file')}, {size(sum(int(file['size_bytes']) for file in files))}, digests match")


def _bring(answer: Json, folder: Path) -> Unpacked:
    with tempfile.TemporaryFile(prefix="spotferry-") as archive:
        fetch(str(answer["url"]), archive, int(answer["size_bytes"]), str(answer["sha256"]), settings())
        complete = answer.get("files_complete") is not False
        return unpack(archive, folder, answer.get("files") or [], complete=complete)
