"""What the wire faces of the local market have in common for the contract: one process, and the market's levers."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from spotferry.ports.cloud import CloudProvider
from spotferry.providers.retries import Timing
from spotferry.types.instance import Attempt, Candidate
from tests.contract.provider_contract import MANY
from tests.contract.provider_contract_world import World


@contextmanager
def market_process(state_dir: Path) -> Iterator[int]:
    """The local cloud without machines behind it, in a process that ends with the block; its port."""
    command = [sys.executable, "-m", "local.cloud", "--no-metal", "--state-dir", str(state_dir)]
    command += ["--speed-up", "1", "--boot-seconds", "0.1"]
    with (state_dir / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=Path(__file__).parents[2])
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (state_dir / "log").read_text()
            yield int(json.loads(line)["port"])
        finally:
            process.terminate()
            process.communicate(timeout=20)


class SkippedTime:
    """Pauses that pass at once, and still count against deadlines."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def monotonic(self) -> float:
        """Seconds, the skipped ones included."""
        return time.monotonic() + self._skipped

    def sleep(self, seconds: float) -> None:
        """Skip them."""
        self._skipped += seconds


class FaceCloud:
    """The levers that are the same for every face of the market; a cloud's own class says the rest.

    Attributes:
        name: the provider's.
        regions: two that have the candidate.
        quota_family: as the market counts the candidate's quota.
        launch_operation: as the face calls it.
        longest_try_seconds: how long one call of the adapter may take.
        throttled, denied: what the levers say in this cloud's words: code, message and HTTP status.
    """

    name: str
    regions: tuple[str, str]
    sells_spot = True
    quota_family: str
    launch_operation: str
    patience_seconds = 10.0
    disks_grow = False
    longest_try_seconds: float
    throttled: Mapping[str, object]
    denied: Mapping[str, object]

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._call_seconds = 0.0
        self._time = SkippedTime()

    def provider(self, world: World) -> CloudProvider:
        """The adapter."""
        raise NotImplementedError

    @contextmanager
    def slow(self, world: World, share: float) -> Iterator[tuple[CloudProvider, Callable[[], float]]]:
        """Each call that is sent moves the adapter's clock."""
        provider = self.provider(world)
        self._call_seconds = share * self.longest_try_seconds
        try:
            yield provider, self._time.monotonic
        finally:
            self._call_seconds = 0.0

    def timing(self, time: SkippedTime | None = None) -> Timing:
        """What the next adapter is given."""
        self._time = time = time or SkippedTime()
        return Timing(monotonic=time.monotonic, sleep=time.sleep)

    def take_time(self) -> None:
        """A call is sent."""
        self._time.sleep(self._call_seconds)

    def candidate(self, region: int = 0) -> Candidate:
        """A small machine."""
        raise NotImplementedError

    def settle(self, provider: CloudProvider, made: Attempt) -> Attempt:  # noqa: ARG002 - others ask it
        """Decided at once."""
        return made

    def bought(self, attempt: Attempt) -> Sequence[str]:
        """By the token, whatever became of it."""
        return [m["allocated_id"] for m in self._of(attempt)]

    def billing(self, attempt: Attempt) -> Sequence[str]:
        """Those that the market has not seen the end of."""
        return [m["allocated_id"] for m in self._of(attempt) if m["terminated_at"] is None]

    def _of(self, attempt: Attempt) -> Sequence[Mapping[str, Any]]:  # Any: JSON of the levers
        """The machines that were sold for the attempt."""
        return [m for m in self.machines() if m["client_token"] == attempt.cedana_id]

    def calm(self) -> None:
        """No faults, plenty of everything, machines shown at once."""
        self.pull("clear_faults")
        self.pull("visibility", seconds=0)
        self.stock_up(MANY)

    def stock_up(self, machines: int) -> None:
        """Machines and quota, with room for those that are there."""
        self.pull("capacity", machines=5 * machines)
        for region in self.regions:
            self._quota(region, 100 * machines)

    def exhaust(self, candidate: Candidate) -> None:
        """Nothing of the type in the zone."""
        offer = candidate.offer
        self.pull(
            "exhaust",
            provider=self.name,
            region=offer.region,
            zone=offer.zone or "*",
            instance_type=offer.instance_type,
        )

    def use_up_quota(self, candidate: Candidate) -> None:
        """No vCPU of the region's quota."""
        self._quota(candidate.offer.region, 0)

    def _quota(self, region: str, vcpus: int) -> None:
        purchase = "spot" if self.sells_spot else "on_demand"
        wish = {"provider": self.name, "region": region, "family": self.quota_family, "purchase": purchase}
        self.pull("quota", vcpus=vcpus, **wish)

    def throttle(self, times: int) -> None:
        """Every operation."""
        self.pull("fail", operation="*", times=times, **self.throttled)

    def fail_next(self, code: str) -> None:
        """One launch."""
        self.pull("fail", operation=self.launch_operation, code=code)

    def lose_answers(self, times: int) -> None:
        """Launches, after they were carried out."""
        self.pull("lose_answers", operation=self.launch_operation, times=times)

    def hide_new_machines(self) -> None:
        """For an hour."""
        self.pull("visibility", seconds=3600)

    def revoke_credentials(self) -> None:
        """Every key."""
        self.pull("credentials/revoke")

    def deny_region(self, candidate: Candidate) -> None:
        """With the words of an organisation's policy."""
        self.pull("fail", operation="*", region=candidate.offer.region, times=1000, **self.denied)

    def end_without_notice(self, attempt: Attempt) -> None:
        """As an interruption whose notice nobody saw; a machine on demand fails instead."""
        if self.sells_spot:
            self.pull("interrupt", allocated_id=attempt.allocated_id, notice_seconds=0)
        else:
            self.pull("kill", allocated_id=attempt.allocated_id)

    def switch_off(self, attempt: Attempt) -> None:
        """From inside."""
        self.pull("switch_off", allocated_id=attempt.allocated_id)

    def pull(self, lever: str, **body: object) -> None:
        """Pull a lever of the market."""
        request = Request(f"{self.url}/_market/{lever}", json.dumps(body).encode(), method="POST")
        with urlopen(request, timeout=10) as answer:
            assert answer.status == 200

    def machines(self) -> Sequence[Mapping[str, Any]]:  # Any: JSON of the levers
        """Every machine that the market ever sold."""
        with urlopen(f"{self.url}/_market/machines", timeout=10) as answer:
            machines: list[Mapping[str, Any]] = json.load(answer)
        return machines
