"""The relay of Google's preemptions as a process on this machine, on its own framework's server.

Give its address to `python -m local.cloud --gcp-relay`; it forwards to a broker, in the name of the account that a
metadata server at `metadata_host` has an identity for.
"""

import sys
from collections.abc import Mapping, Sequence

from local.packaging import ROOT

SOURCE = ROOT / "functions" / "relay_gcp_preemption" / "main.py"


def command(port: int) -> Sequence[str]:
    """What starts it, serving at this port of the loopback address."""
    what = ["--target", "relay", "--signature-type", "cloudevent", "--source", str(SOURCE)]
    return [sys.executable, "-m", "functions_framework", *what, "--host", "127.0.0.1", "--port", str(port)]


def environment(broker_url: str, audience: str, metadata_host: str) -> Mapping[str, str]:
    """Where it forwards to, whom its tokens are for, and where it gets them."""
    return {
        "BROKER_URL": broker_url,
        "BROKER_AUDIENCE": audience,
        "GCE_METADATA_HOST": metadata_host,
        "GCE_METADATA_IP": metadata_host,
    }
