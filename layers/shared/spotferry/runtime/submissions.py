"""How a body becomes a submission: a job file alone (YAML or JSON), or an envelope that also names its upload."""

import hashlib
import json
from typing import Any

from pydantic import Field

from spotferry.runtime.http import Malformed, parse_json
from spotferry.types.base import Value
from spotferry.types.errors import InvalidJobFile, Problem
from spotferry.types.job import Upload
from spotferry.types.job_file_reader import read_job_file
from spotferry.usecases.submit_job import Submission


class Envelope(Value):
    """A job file with what goes with it.

    Attributes:
        job_file: the file's text, or the same as a JSON object.
        job_file_path: where it came from, for people.
        upload: the work directory that was sent before.
    """

    job_file: str | dict[str, Any]  # Any: the file's own keys, read by its own reader
    job_file_path: str = Field(default="", max_length=1024)
    upload: Upload | None = None


def read_submission(text: str, owner: str, idempotency_key: str = "") -> Submission:
    """The submission in a body.

    Raises:
        InvalidInput: it is neither JSON nor YAML, or wrong; names the field.
    """
    envelope = _envelope(text)
    said = envelope.job_file
    job_text = said if isinstance(said, str) else json.dumps(said)
    return Submission(
        owner=owner,
        spec=read_job_file(job_text, envelope.job_file_path),
        job_file_path=envelope.job_file_path,
        upload=envelope.upload,
        body_sha256=hashlib.sha256(text.encode()).hexdigest(),
        idempotency_key=idempotency_key,
    )


def _envelope(text: str) -> Envelope:
    try:
        loaded = parse_json(text)
    except ValueError:
        return _bare(text)
    if isinstance(loaded, dict) and "job_file" in loaded:
        return Envelope.model_validate(loaded)
    return _bare(text)


def _bare(text: str) -> Envelope:
    """The body is the job file itself; what is not even YAML is malformed rather than wrong."""
    try:
        read_job_file(text)
    except InvalidJobFile as error:
        if len(error.problems) == 1 and not error.problems[0].field:
            raise Malformed([Problem("", f"the body is neither JSON nor a YAML job file: {error}")]) from error
        raise
    return Envelope(job_file=text)
