"""What holds between the inputs of a job file: what each lacks, and which would overwrite one another."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from spotferry.types.errors import Problem
from spotferry.types.job_file_words import check_input_path
from spotferry.types.words import shown

_CLOUD_OF = {"s3": "aws", "gs": "gcp"}


def default_path(uri: str) -> str:
    """Where an input goes that says no path: the last part of its address."""
    path = uri.partition("://")[2].partition("/")[2] if not uri.startswith("https:") else unquote(urlsplit(uri).path)
    return path.rpartition("/")[2]


def check_inputs(inputs: Sequence[Mapping[str, object]]) -> Iterator[Problem]:
    """What is wrong with inputs that are well one by one."""
    paths: dict[str, int] = {}
    for number, given in enumerate(inputs):
        field = f"inputs.{number}"
        lacks = [key for key in ("uri", "size_gb") if not given.get(key)]
        if lacks:
            yield Problem(f"{field}.{lacks[0]}", "is missing; an input has a uri and a size_gb above 0")
            continue
        uri, path = str(given["uri"]), str(given.get("path") or default_path(str(given["uri"])))
        yield from _check_location(field, uri, str(given.get("location") or ""))
        if check_input_path(path):
            yield Problem(f"{field}.path", "is missing, and the address ends in no name: say where it goes")
        clash = next((other for other in paths if _clash(path, other)), None)
        if clash is not None:
            other = f"inputs.{paths[clash]}, {shown(clash)}"
            yield Problem(field, f"{shown(path)} gets in the way of {other}: say another path")
        paths.setdefault(path, number)


def _check_location(field: str, uri: str, location: str) -> Iterator[Problem]:
    cloud = _CLOUD_OF.get(uri.partition(":")[0])
    if cloud is not None and location.partition("/")[0] != cloud:
        message = f"must be {cloud}/REGION, the region of the bucket: what it costs to carry depends on it"
        yield Problem(f"{field}.location", message)


def _clash(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/")
