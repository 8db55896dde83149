"""What the services that the broker is made of bill, US dollars, and how much of them each of its steps takes.

List prices of us-east-1, first tier and no free tier, as AWS published them in 2025 on the pricing pages of S3,
DynamoDB (on demand), Lambda (x86), API Gateway (HTTP API) and SQS. Other regions differ by some percent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

GIB = 1024**3
HOURS_PER_MONTH = 730

S3_GIB_MONTH = Decimal("0.023")

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Effort:
    """Units that services bill for one step of the broker, or for many together.

    Attributes:
        api_requests: of the HTTP API.
        function_calls, function_gib_seconds: of Lambda.
        reads, writes: of DynamoDB, in its units, consistency and transactions counted.
        object_reads, object_writes: GET and PUT of S3.
        queue_requests: send, receive and delete of SQS.
    """

    api_requests: Decimal = Decimal(0)
    function_calls: Decimal = Decimal(0)
    function_gib_seconds: Decimal = Decimal(0)
    reads: Decimal = Decimal(0)
    writes: Decimal = Decimal(0)
    object_reads: Decimal = Decimal(0)
    object_writes: Decimal = Decimal(0)
    queue_requests: Decimal = Decimal(0)

    @property
    def usd(self) -> Decimal:
        """At list price."""
        return sum((getattr(self, name) * price for name, price in _UNIT_USD.items()), Decimal(0))


_UNIT_USD: Mapping[str, Decimal] = {
    "api_requests": Decimal("1.00") / _MILLION,
    "function_calls": Decimal("0.20") / _MILLION,
    "function_gib_seconds": Decimal("0.0000166667"),
    "reads": Decimal("0.125") / _MILLION,
    "writes": Decimal("0.625") / _MILLION,
    "object_reads": Decimal("0.0004") / 1000,
    "object_writes": Decimal("0.005") / 1000,
    "queue_requests": Decimal("0.40") / _MILLION,
}


def _effort(**units: str) -> Effort:
    return Effort(**{name: Decimal(count) for name, count in units.items()})


HEARTBEAT = _effort(
    api_requests="1", function_calls="1", function_gib_seconds="0.02", reads="5", writes="4", object_writes="1"
)
"""One heartbeat: attempt and job read, the last word written, a piece of log put."""
CHANGE = _effort(api_requests="1", function_calls="1", function_gib_seconds="0.06", reads="5", writes="14")
"""One saved change of a job: a transaction over job, attempt and timeline, and what brought it."""
PLACEMENT = _effort(
    function_calls="3", function_gib_seconds="1.5", reads="6", object_reads="1", object_writes="1", queue_requests="9"
)
"""One attempt: its placement and its end, a message and a call each, and the look at its launch."""
ARCHIVE = _effort(api_requests="1", function_calls="1", function_gib_seconds="0.1", object_writes="4", object_reads="2")
"""One checkpoint beside its commit, without its bytes' own chunks: addresses, begin, complete, manifest, look."""
CHUNK = _effort(object_writes="1")
"""One piece of an archive on its way up."""
