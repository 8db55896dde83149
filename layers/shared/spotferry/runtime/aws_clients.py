"""Clients of the broker's own services; made on first use, over one session, without boto3's resources.

The SDK itself is loaded with the first client: it takes as long as half of a function's other imports.
"""

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.config import Config
    from botocore.session import Session

Client = Any  # Any: the SDK makes its clients at run time and has no types for their answers


def _config(service: str) -> "Config":
    """How a service is spoken to.

    Addresses in the bucket that are handed out name its region: S3's global name redirects, which an upload cannot
    follow.
    """
    config: type[Config] = import_module("botocore.config").Config
    usual = config(
        connect_timeout=3,
        read_timeout=10,
        retries={"mode": "standard", "total_max_attempts": 4},
        user_agent_extra="spotferry",
    )
    return (
        usual.merge(config(signature_version="s3v4", s3={"addressing_style": "virtual"})) if service == "s3" else usual
    )


@lru_cache(maxsize=1)
def _session() -> "Session":
    session: Session = import_module("botocore.session").get_session()
    return session


@lru_cache(maxsize=8)
def client(service: str, region: str) -> Client:
    """The client of one service, shared by all calls of this process."""
    return _session().create_client(service, region_name=region, config=_config(service))
