"""Clients of the broker's own services; made on first use, over one session, without boto3's resources."""

from functools import lru_cache
from typing import Any

from botocore.config import Config
from botocore.session import Session, get_session

Client = Any  # Any: the SDK makes its clients at run time and has no types for their answers

_CONFIG = Config(
    connect_timeout=3,
    read_timeout=10,
    retries={"mode": "standard", "total_max_attempts": 4},
    user_agent_extra="spotferry",
)


_S3_CONFIG = _CONFIG.merge(Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))
"""Addresses that are handed out name the bucket's region: S3's global name redirects, which an upload cannot follow."""


@lru_cache(maxsize=1)
def _session() -> Session:
    return get_session()


@lru_cache(maxsize=8)
def client(service: str, region: str) -> Client:
    """The client of one service, shared by all calls of this process."""
    config = _S3_CONFIG if service == "s3" else _CONFIG
    return _session().create_client(service, region_name=region, config=config)
