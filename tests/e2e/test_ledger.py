"""Twenty interrupted jobs on real processes: what the ledger says is what the market charged."""

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import httpx
import pytest

from local.stack import Options, Stack, running
from spotferry.types import FINAL_STATES
from tests.e2e.broker import Broker, eventually

pytestmark = pytest.mark.e2e

Json = dict[str, Any]  # Any: JSON of the API

_MICRO = Decimal("0.000001")
"""What a shown cost is rounded to."""
LONG, SHORT = 4, 16
AT_ONCE = 4
LONG_SECONDS = 63
"""Longer than the minute that is billed at least, so that seconds count."""
LOOK_SECONDS = 0.5
"""The emulator runs eight functions at a time, for agents and lookers alike: looking more often starves the agents."""
DEADLINE_SECONDS = 400
JOB = """
project: ledger
labels: {length: LENGTH}
instance_specs: {cpu_cores: 1, memory_gb: 1}
task:
  run: sleep SECONDS
restored_task:
  run: echo done
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A local cloud of its own, so that all that its market sold is ours."""
    patient = {"LeaseSeconds": "300", "HeartbeatSeconds": "10"}  # a broker with twenty jobs on a laptop may be slow
    options = Options(tied=True, parameters=patient)
    with running(tmp_path_factory.mktemp("ledger"), options) as stack, Broker(stack) as broker:
        yield broker


def _ask(broker: Broker, method: str, path: str, **request: Any) -> Json:  # Any: httpx's own keyword arguments
    """The broker's answer, once the emulator has a function free for it."""

    def answered() -> httpx.Response | None:
        try:
            answer = broker.send(method, path, **request)
        except httpx.ReadTimeout:
            return None  # a machine that is busy with twenty jobs may be slow to answer; asking twice does no harm
        if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
            return answer
        time.sleep(LOOK_SECONDS)
        return None

    answer: httpx.Response = eventually(f"{path} is answered", answered)
    assert answer.is_success, answer.text
    document: Json = answer.json()
    return document


def _started(broker: Broker, length: str, seconds: int) -> str:
    """A job whose task runs, for so long unless it is restored: one whose checkpoint is lost ends all the same."""
    job_file = JOB.replace("LENGTH", length).replace("SECONDS", str(seconds))
    same_if_repeated = {"Idempotency-Key": uuid.uuid4().hex}
    job_id = str(_ask(broker, "POST", "/jobs", json={"job_file": job_file}, headers=same_if_repeated)["job"]["job_id"])
    _wait(broker, job_id, "RUNNING")
    return job_id


def _finished(broker: Broker, job_id: str) -> str:
    """The job after its machine was taken back and another one ended it."""
    broker.interrupt(str(_wait(broker, job_id, "RUNNING")["machine"]["allocated_id"]))
    _wait(broker, job_id, "DONE")
    return job_id


def _wait(broker: Broker, job_id: str, state: str) -> Json:
    """The job, once it is in the state; looked at now and then."""

    def reached() -> Json | None:
        job = _ask(broker, "GET", f"/jobs/{job_id}")
        if job["state"] == state:
            return job
        assert job["state"] not in FINAL_STATES, (job, _ask(broker, "GET", f"/jobs/{job_id}/timeline"))
        time.sleep(LOOK_SECONDS)
        return None

    found: Json = eventually(f"{job_id} is {state}", reached, DEADLINE_SECONDS)
    return found


def _bills(stack: Stack) -> dict[str, Decimal]:
    machines = httpx.get(f"{stack.cloud_url}/_market/machines", timeout=10).json()
    assert {machine["state"] for machine in machines} == {"terminated"}
    return {machine["allocated_id"]: Decimal(machine["cost_usd"]) for machine in machines}


def _ledger(broker: Broker, **query: str) -> Json:
    return _ask(broker, "GET", "/costs", params={"limit": "100", **query})


def test_the_ledger_of_twenty_interrupted_jobs_is_the_markets_bill(broker: Broker) -> None:
    """Within one per cent in all, within two seconds a machine; groups add up to the same."""
    with ThreadPoolExecutor(AT_ONCE) as hands:
        long = list(hands.map(lambda _: _started(broker, "long", 10 * LONG_SECONDS), range(LONG)))
        since = time.monotonic()
        short = list(hands.map(lambda _: _finished(broker, _started(broker, "short", 300)), range(SHORT)))
        time.sleep(max(0.0, LONG_SECONDS - (time.monotonic() - since)))  # the machines' time is what is billed
        jobs = [*short, *hands.map(lambda job_id: _finished(broker, job_id), long)]

    def settled() -> bool:
        broker.poll()
        return all(_ask(broker, "GET", f"/jobs/{job_id}")["settled"] for job_id in jobs)

    eventually("all machines are gone", settled, DEADLINE_SECONDS)
    bills = _bills(broker.stack)
    machines = [machine for job_id in jobs for machine in _ledger(broker, job=job_id)["instances"]]
    assert sorted(machine["allocated_id"] for machine in machines) == sorted(bills)
    assert len(machines) >= 2 * len(jobs)
    assert sum(machine["seconds"] > LONG_SECONDS - 2 for machine in machines) >= LONG
    for machine in machines:
        price, disk, cost = (Decimal(str(machine[name])) for name in ("price_usd_hour", "disk_usd_hour", "cost_usd"))
        machine_usd = cost - disk * int(machine["seconds"]) / 3600
        assert abs(machine_usd - bills[machine["allocated_id"]]) <= price * 2 / 3600 + _MICRO, machine
    total = sum(bills.values(), Decimal(0))
    by_label = _ledger(broker, by="label=length")
    assert abs(Decimal(str(by_label["total"]["machine_usd"])) - total) <= total / 100
    assert {group["key"]: group["jobs"] for group in by_label["groups"]} == {"long": LONG, "short": SHORT}
    assert _ledger(broker, by="project")["total"] == by_label["total"]
    assert by_label["total"]["interruptions"] == LONG + SHORT
