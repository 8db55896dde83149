"""What single words of a job file may be: each check says what is wrong with one, "" for nothing."""

import difflib
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from spotferry.types.provider import PROVIDER_NAMES

MAX_NAME_CHARS = 63
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TITLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 _.:/=+@-]*")
_REGION = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}[a-z0-9]")
MAX_URI_CHARS = 2048
MAX_PATH_CHARS = 255

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}")
MAX_FILE_NAME_BYTES = 255
"""What Linux's file systems take."""

MAX_PATTERN_DIRECTORIES = 100
"""The agents' limit: the library that matches goes deeper into the stack for each."""


def nearest(word: str, known: Sequence[str]) -> str:
    """The known word that was probably meant, "" when none is near."""
    return next(iter(difflib.get_close_matches(word.lower(), known, n=1)), "")


def check_title(text: str) -> str:
    """A name, project or label value: what every cloud takes as the value of a tag."""
    if len(text) <= MAX_NAME_CHARS and _TITLE.fullmatch(text):
        return ""
    return f"is not at most {MAX_NAME_CHARS} letters, digits, spaces and _.:/=+@-, a letter, digit or _ first"


def check_image(name: str) -> str:
    """What could be the name of an image of any cloud: an id, a path, a URN."""
    return "" if _IMAGE.fullmatch(name) else "is not the name of an image (such as ami-0123456789abcdef0)"


def check_work_dir(path: str) -> str:
    """A directory whose name the machine can have."""
    last = path.rstrip("/").rpartition("/")[2]
    too_long = len(last.encode()) > MAX_FILE_NAME_BYTES
    return f"ends in a name of more than {MAX_FILE_NAME_BYTES} bytes, which no machine takes" if too_long else ""


def check_name(name: str) -> str:
    """A name that can be an environment variable."""
    if not _NAME.fullmatch(name):
        return "is not a name: letters, digits and _, no digit first"
    return "" if len(name) <= MAX_NAME_CHARS else f"is longer than {MAX_NAME_CHARS} characters"


def check_provider(name: str) -> str:
    """One of PROVIDER_NAMES."""
    if name in PROVIDER_NAMES:
        return ""
    meant = nearest(name, PROVIDER_NAMES)
    hint = f"did you mean {meant}?" if meant else "known: " + ", ".join(PROVIDER_NAMES)
    return f"is not a provider; {hint}"


def check_region(name: str) -> str:
    """What could be the name of a region of any cloud."""
    return "" if _REGION.fullmatch(name) else "is not the name of a region (such as us-east-1)"


def check_output(path: str) -> str:
    """A path or glob below the work directory."""
    parts = path.replace("\\", "/").split("/")
    if not path.strip():
        return "is blank"
    if parts[0] == "" or path[1:2] == ":" or path.startswith("~"):
        return "is absolute; outputs are paths below the work directory"
    return "leaves the work directory; outputs are paths below it" if ".." in parts else _check_pattern(path)


def _check_pattern(pattern: str) -> str:
    """What machines can match: `*`, `?` and `[...]` within a name, `**` for any directories."""
    names = pattern.split("/")
    if any("**" in name and name != "**" for name in names):
        return "has ** beside other characters; ** stands for any directories (logs/**/*.txt), * for part of a name"
    if any(len(name.encode()) > MAX_FILE_NAME_BYTES for name in names):
        return f"has a name of more than {MAX_FILE_NAME_BYTES} bytes, which no machine takes"
    if len(names) > MAX_PATTERN_DIRECTORIES:
        return f"has {len(names)} names; the limit is {MAX_PATTERN_DIRECTORIES}"
    return ""


def check_uri(uri: str) -> str:
    """The address of one object: `s3://bucket/key`, `gs://bucket/object` or `https://...`."""
    if len(uri) > MAX_URI_CHARS or not uri.isascii() or not uri.isprintable() or " " in uri:
        return f"is not at most {MAX_URI_CHARS} ASCII characters without blanks"
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme == "http":
        return "is not encrypted; say https://"
    if parts.scheme not in {"s3", "gs", "https"}:
        return "is none of s3://bucket/key, gs://bucket/object, https://..."
    if not host or parts.username is not None or (parts.scheme == "https" and parts.fragment):
        return "must name a host alone, without a user, and no part behind #"
    return "" if parts.scheme == "https" else _check_object(uri)


def _check_object(uri: str) -> str:
    bucket, _, key = uri.partition("://")[2].partition("/")
    if not _BUCKET.fullmatch(bucket):
        return "does not name a bucket"
    return "" if key and not key.endswith("/") else "must name one object, not a bucket or a folder"


def check_location(location: str) -> str:
    """`provider/region`."""
    provider, slash, region = location.partition("/")
    if not slash:
        return "is not provider/region (such as aws/us-east-1)"
    return check_provider(provider) or check_region(region)


def check_input_path(path: str) -> str:
    """A path below the directory of inputs."""
    if not path or path.startswith(("/", "~")) or "\\" in path or len(path) > MAX_PATH_CHARS:
        return f"is not a path below the directory of inputs, with / between its parts, of {MAX_PATH_CHARS} characters"
    return "has a part that is empty, . or .." if {"", ".", ".."} & set(path.split("/")) else ""
