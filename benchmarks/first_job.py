"""What the first job after a cold start waits for beside the imports: the libraries that are loaded when they are first
asked for, the adapters, their clients. Not the calls to services, nor the catalogue's contents, which `catalogues` has.
"""

from pynamodb.connection import Connection

from spotferry.runtime.settings import Settings
from spotferry.runtime.submissions import read_submission
from spotferry.runtime.submitters import Submitters
from spotferry.runtime.wiring import Wiring

REGION = "us-east-1"
NAMED = (
    *("deployment", "jobs_table", "instances_table", "checkpoints_table", "timeline_table", "bans_table", "bucket"),
    *("parameter_prefix", "placement_queue_url", "destroy_queue_url"),
)
"""What the settings must name for a job to be taken."""


def prepare() -> None:
    """Do all of it; reaches for no service."""
    wiring = Wiring(Settings.from_environment({**{name: name for name in NAMED}, "aws_region": REGION}))
    assert Submitters(wiring).submit_job
    assert read_submission("task:\n  run: ./measured\n", "measured").spec
    for service in ("s3", "sqs", "ssm"):
        assert wiring.client(service)()
    assert Connection(region=REGION).client, "the store makes its own at its first read"
