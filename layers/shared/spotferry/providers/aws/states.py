"""EC2's words for what a machine is and why, as data."""

from collections.abc import Mapping
from datetime import timedelta

from spotferry.providers.ends import Cause

NOTICE = timedelta(minutes=2)
"""How long before the end EC2 announces that it takes a spot machine back."""

STATES: Mapping[str, str] = {
    "pending": "pending",
    "running": "running",
    "shutting-down": "shutting-down",
    "terminated": "terminated",
    "stopping": "stopping",
    # Stopped is lost to its job, and not gone: its disk bills until it is terminated.
    "stopped": "stopping",
}
"""EC2's state of a machine to ours."""


STATE_REASONS: Mapping[str, Cause] = {
    "Server.SpotInstanceTermination": Cause.TAKEN_BACK,
    "Server.SpotInstanceShutdown": Cause.TAKEN_BACK,
    "Server.InsufficientInstanceCapacity": Cause.NEVER_STARTED,
    "Server.InternalError": Cause.NEVER_STARTED,
    "Client.VolumeLimitExceeded": Cause.NEVER_STARTED,
    "Client.InternalError": Cause.NEVER_STARTED,
    "Client.InvalidSnapshot.NotFound": Cause.NEVER_STARTED,
    "Server.ScheduledStop": Cause.MAINTAINED,
    "Client.UserInitiatedShutdown": Cause.ORDERED,
    "Client.UserInitiatedHibernate": Cause.ORDERED,
    "Client.InstanceInitiatedShutdown": Cause.SHUT_DOWN,
}
"""Code of a machine's StateReason to who ended it."""

SPOT_STATUS: Mapping[str, Cause] = {
    "marked-for-termination": Cause.TAKEN_BACK,
    "marked-for-stop": Cause.TAKEN_BACK,
    "instance-terminated-by-price": Cause.TAKEN_BACK,
    "instance-terminated-no-capacity": Cause.TAKEN_BACK,
    "instance-terminated-capacity-oversubscribed": Cause.TAKEN_BACK,
    "instance-terminated-launch-group-constraint": Cause.TAKEN_BACK,
    "instance-terminated-by-experiment": Cause.TAKEN_BACK,
    "instance-terminated-by-service": Cause.TAKEN_BACK,
    "instance-stopped-by-price": Cause.TAKEN_BACK,
    "instance-stopped-no-capacity": Cause.TAKEN_BACK,
    "instance-terminated-by-user": Cause.ORDERED,
    "instance-stopped-by-user": Cause.ORDERED,
}
"""Status code of a spot request to who ends its machine; every other code says nothing about an end."""

ANNOUNCED = frozenset({"marked-for-termination", "marked-for-stop"})
"""The status codes of machines that still run, for `NOTICE` after the status was set."""
