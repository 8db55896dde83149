"""What agents and clouds send, as it goes over the wire."""

import hashlib
from typing import Any

from spotferry.types import Attempt

Json = dict[str, Any]  # Any: JSON


def token_of(instance_id: str, epoch: int) -> str:
    """A token that differs from attempt to attempt."""
    return hashlib.sha256(f"{instance_id} {epoch}".encode()).hexdigest()


def key_of(attempt: Attempt) -> str:
    """The key that the attempt's agent made up."""
    return hashlib.sha256(f"key of {attempt.cedana_id}".encode()).hexdigest()


def bearer(attempt: Attempt, *, token: str = "", key: str = "") -> str:
    """The agent's authorization header."""
    token = token or token_of(attempt.cedana_id, attempt.epoch)
    return f"Bearer {attempt.cedana_id}.{token}.{key or key_of(attempt)}"


def warning(attempt: Attempt, allocated_id: str = "") -> Json:
    """EC2's warning that it takes the machine back."""
    return _event(
        "EC2 Spot Instance Interruption Warning",
        attempt.region,
        {"instance-id": allocated_id or attempt.allocated_id, "instance-action": "terminate"},
    )


def state_change(attempt: Attempt, state: str) -> Json:
    """EC2's word that the machine's state changed."""
    return _event(
        "EC2 Instance State-change Notification",
        attempt.region,
        {"instance-id": attempt.allocated_id, "state": state},
    )


def _event(kind: str, region: str, detail: Json) -> Json:
    return {
        "version": "0",
        "id": "e-1",
        "detail-type": kind,
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2026-05-04T12:00:00Z",
        "region": region,
        "resources": [],
        "detail": detail,
    }
