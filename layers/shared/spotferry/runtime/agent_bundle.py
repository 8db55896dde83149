"""The agent as the file that machines fetch."""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib import resources

_PACKAGE = "spotferry.agent"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_READABLE = 0o100644 << 16
_MAIN = """\
import sys

from spotferry.agent.__main__ import main

sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class AgentBundle:
    """A Python zip application.

    Attributes:
        content: its bytes.
        sha256: their digest, under which machines ask for it.
    """

    content: bytes
    sha256: str


@cache
def agent_bundle() -> AgentBundle:
    """The agent of this deployment; the same source gives the same bytes on every machine and Python."""
    sources = {
        f"spotferry/agent/{entry.name}": entry.read_bytes()
        for entry in resources.files(_PACKAGE).iterdir()
        if entry.name.endswith(".py")
    }
    files = {**sources, "spotferry/__init__.py": b"", "__main__.py": _MAIN.encode()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as bundle:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.external_attr = _READABLE
            entry.create_system = 3
            bundle.writestr(entry, files[name])
    content = buffer.getvalue()
    return AgentBundle(content, hashlib.sha256(content).hexdigest())
