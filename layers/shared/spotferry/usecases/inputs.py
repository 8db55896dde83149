"""Where a job's inputs are fetched from, and whether they are there."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from spotferry.domain.pace import Pace
from spotferry.ports.cloud import ObjectStore
from spotferry.ports.inputs import InputProbe
from spotferry.types.base import Json
from spotferry.types.errors import InvalidInput, Problem
from spotferry.types.job_file import Input, JobFile
from spotferry.types.words import cut

INPUTS_PREFIX = "inputs/"
"""What people may put into the broker's bucket for their jobs; no job gets to anything else in it."""

_BYTES_PER_GB = 1_000_000_000
_TOLERANCE = 1.1
_SLACK_BYTES = 10_000_000


def own_key(uri: str, bucket: str) -> str | None:
    """The key of an input in the broker's own bucket; None for one that is elsewhere."""
    prefix = f"s3://{bucket}/"
    return uri.removeprefix(prefix) if bucket and uri.startswith(prefix) else None


def public_url(given: Input) -> str:
    """The address at which anybody, or who has the credentials, fetches an object."""
    scheme, _, rest = given.uri.partition("://")
    if scheme == "https":
        return given.uri
    bucket, _, key = rest.partition("/")
    path = quote(key, safe="/-_.~")
    if scheme == "gs":
        return f"https://storage.googleapis.com/{bucket}/{path}"
    host = f"s3.{given.location.partition('/')[2]}.amazonaws.com"
    # the certificate covers one label before the host: a bucket with dots in its name goes into the path
    return f"https://{host}/{bucket}/{path}" if "." in bucket else f"https://{bucket}.{host}/{path}"


def inputs_json(spec: JobFile, bucket: str, objects: ObjectStore, pace: Pace) -> list[Json]:
    """The inputs as the agent's plan has them; addresses in the broker's bucket are made now."""
    return [
        {
            "path": given.place,
            "uri": given.uri,
            "region": given.location.partition("/")[2],
            "size_gb": float(given.size_gb),
            **_access(given, own_key(given.uri, bucket), objects, pace),
        }
        for given in spec.inputs
    ]


def _access(given: Input, key: str | None, objects: ObjectStore, pace: Pace) -> Json:
    if key is not None:
        return {"url": objects.url_to_get(key, pace.address_expiry), "access": "broker"}
    clouds = {"s3": "aws", "gs": "gcp"}
    return {"url": public_url(given), "access": clouds.get(given.uri.partition(":")[0], "")}


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """Refuses a job whose inputs are known not to be there; what only the machine can tell, the machine tells."""

    bucket: str
    objects: ObjectStore
    probe: InputProbe

    def __call__(self, spec: JobFile) -> None:
        """Look at each input.

        Raises:
            InvalidInput: names each that is missing, or is not as large as the job file says.
        """
        problems = [problem for number, given in enumerate(spec.inputs) for problem in self._problems(number, given)]
        if problems:
            raise InvalidInput(problems)

    def _problems(self, number: int, given: Input) -> Iterator[Problem]:
        key = own_key(given.uri, self.bucket)
        if key is not None:
            yield from self._own(number, given, key)
        elif given.uri.startswith("https:") and (why := self.probe.why_missing(given.uri)):
            yield Problem(f"inputs.{number}.uri", f"{cut(given.uri)} cannot be fetched: {why}")

    def _own(self, number: int, given: Input, key: str) -> Iterator[Problem]:
        if not key.startswith(INPUTS_PREFIX):
            yield Problem(f"inputs.{number}.uri", f"of this bucket jobs may read what is below {INPUTS_PREFIX} only")
            return
        size = self.objects.head(key)
        if size is None:
            yield Problem(
                f"inputs.{number}.uri", f"{cut(given.uri)} is not there: put it there first, or mend the path"
            )
        elif size > float(given.size_gb) * _BYTES_PER_GB * _TOLERANCE + _SLACK_BYTES:
            message = f"says {given.size_gb}, but {cut(given.uri)} has {size} bytes"
            yield Problem(f"inputs.{number}.size_gb", message)
