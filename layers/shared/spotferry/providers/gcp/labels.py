"""Tags as labels: Compute Engine takes lower-case letters, digits, `_` and `-`, in keys and values, 63 at most."""

import hashlib
import re
from collections.abc import Mapping

from spotferry.providers.context import DEPLOYMENT_TAG

MOST_LABELS = 64
_LENGTH = 63
_DIGEST = 8
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_OTHER = re.compile(r"[^a-z0-9_-]+")
_OF_THE_JOB = "spotferry:label:"


def key(tag: str) -> str:
    """The label's key for a tag's: `spotferry:job` is `spotferry-job`; what is lost of a key is in its digest."""
    plain = tag.replace(":", "-")
    return plain if _KEY.fullmatch(plain) else _shortened(f"x-{plain}" if not plain[:1].isalpha() else plain, tag)


def value(text: str) -> str:
    """The label's value for a tag's; one that had to be changed ends with a digest, so that two never meet."""
    return text if _VALUE.fullmatch(text) else _shortened(text, text)


def labels(tags: Mapping[str, str]) -> dict[str, str]:
    """The labels for a machine's tags: ours first, then of the job's own as many as fit."""
    ours = {key(tag): value(text) for tag, text in sorted(tags.items()) if not tag.startswith(_OF_THE_JOB)}
    more = {key(tag): value(text) for tag, text in sorted(tags.items()) if tag.startswith(_OF_THE_JOB)}
    room = MOST_LABELS - 1 - len(ours)
    return {**dict(list(more.items())[: max(room, 0)]), **ours}


DEPLOYMENT = key(DEPLOYMENT_TAG)
"""The label whose value is the deployment: every machine carries it, and only such a machine is ours."""
INSTANCE = key("spotferry:instance")
"""The label whose value is the attempt that the machine was launched for."""


def _shortened(text: str, whole: str) -> str:
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGEST]
    return f"{_OTHER.sub('-', text.lower())[: _LENGTH - _DIGEST - 1]}-{digest}"
