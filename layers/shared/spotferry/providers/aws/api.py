"""Calls to AWS: a client per service and region, retries within a deadline, and no vendor's exception beyond here."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import boto3
from botocore.config import Config

from spotferry.providers.aws.errors import VENDOR_ERRORS, VendorError, call_error, failure_of, launch_error
from spotferry.providers.retries import TOTAL_SECONDS, AskAgain, Deadline, RegionCalls, Timing
from spotferry.types.errors import ProviderError

Service = Literal["ec2", "ssm", "pricing"]
# Any: the SDK makes its clients at run time and has no types for their answers.
Client = Any
Answer = Mapping[str, Any]

CONNECT_SECONDS = 2.0
READ_SECONDS = 7.0


def _connector() -> Callable[[Service, str], Client]:
    """A factory of clients over one session; the SDK does not repeat calls by itself, `Deadline` does."""
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent_extra="spotferry",
    )
    session = boto3.session.Session()
    return lambda service, region: session.client(service, region_name=region, config=config)


class AwsApi:
    """Gives out clients, one per service and region, made on first use; safe to share between threads."""

    def __init__(self, connect: Callable[[Service, str], Client] | None = None, timing: Timing | None = None) -> None:
        self._connect = connect
        self._timing = timing or Timing()
        self._clients: dict[tuple[Service, str], Client] = {}
        self._lock = threading.Lock()

    def begin(self, region: str, service: Service = "ec2") -> "Calls":
        """Calls to one region that belong together, most of them to this service: their deadline runs from now."""
        # Making a client reads files for a second on a small machine, which is no call's time. What is wrong with it is
        # told by the call that needs it.
        with suppress(*VENDOR_ERRORS):
            self.client(service, region)
        return Calls(region, Deadline(self._timing, TOTAL_SECONDS, CONNECT_SECONDS + READ_SECONDS), self)

    def client(self, service: Service, region: str) -> Client:
        """The client of one service in one region."""
        with self._lock:
            if self._connect is None:
                self._connect = _connector()
            if (service, region) not in self._clients:
                self._clients[service, region] = self._connect(service, region)
            return self._clients[service, region]


@dataclass(frozen=True, slots=True)
class Calls(RegionCalls):
    """Calls to one region; together they end before the deadline."""

    api: AwsApi

    def ec2(self, operation: str, **params: object) -> Answer:
        """Call EC2.

        Raises:
            ProviderUnavailable: throttled, failing, unreachable or slow beyond the deadline.
            SkipProvider, TryNextRegion: we may not.
            ProviderError: any other refusal.
        """
        return self._call("ec2", operation, params, lambda error: call_error(error, self.region))

    def ssm(self, operation: str, **params: object) -> Answer:
        """Call Systems Manager; raises as `ec2` does."""
        return self._call("ssm", operation, params, lambda error: call_error(error, self.region))

    def pricing(self, operation: str, **params: object) -> Answer:
        """Call the price list, which only a few regions have; raises as `ec2` does."""
        return self._call("pricing", operation, params, lambda error: call_error(error, self.region))

    def run_instances(self, instance_type: str, params: Mapping[str, object], *, own_image: bool) -> Answer:
        """Launch; what is refused is told by the launch's own table of errors, which knows a job's own image."""

        def refusal(error: VendorError) -> ProviderError:
            return launch_error(error, self.region, instance_type, own_image=own_image)

        return self._call("ec2", "run_instances", params, refusal)

    def _call(
        self,
        service: Service,
        operation: str,
        params: Mapping[str, object],
        translate: Callable[[VendorError], ProviderError],
    ) -> Answer:
        def once() -> Answer:
            try:
                answer: Answer = getattr(self.api.client(service, self.region), operation)(**params)
            except VENDOR_ERRORS as error:
                failure, refusal = failure_of(error), translate(error)
                # An expired request is a clock that is off, or a signature that waited: a fresh one decides which.
                if failure.code == "RequestExpired":
                    raise AskAgain(refusal, once=True) from error
                raise (AskAgain(refusal) if failure.transient else refusal) from error
            return answer

        return self.deadline.until_answered(once, operation, self.region)
