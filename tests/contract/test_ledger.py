"""The ledger against the bill: the broker's own records, made through the adapter, beside what the market charged."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import cast

import boto3
import pytest
from werkzeug.serving import make_server

from local.ec2 import Ec2Face, public_image_id
from local.market import Market
from local.market_faults import Faults
from local.market_model import PoolKey, Purchase
from local.market_prices import PriceRow
from spotferry.domain.costs import attempt_cost, job_cost
from spotferry.ports.cloud import RegionSettings
from spotferry.providers.aws.api import AwsApi, Client, Service
from spotferry.providers.aws.images import PUBLIC_PARAMETERS
from spotferry.providers.aws.provider import AwsProvider
from spotferry.providers.context import ProviderContext
from spotferry.types import Attempt, Job
from tests.fake_cloud import FakeCloud
from tests.unit.usecases.world import World, state_change, warning

JOBS = 20
SEED = 5
PAUSE_SECONDS = 20 * 60
"""Between two jobs: longer than a pool that took a machine back is left alone."""


class Story:
    """One deployment over the real adapter and a market, all on one clock that only the test moves."""

    def __init__(self) -> None:
        self.world = World()
        self.market = Market(self.world.clock, seed=SEED)
        self.dice = random.Random(SEED)  # noqa: S311 (tells a story, keeps no secret)

    def join(self, url: str) -> None:
        """Let the broker buy at this address, in a market that asks the catalogue's prices at first."""
        session = boto3.session.Session("AKIALEDGER", "not-a-secret")

        def connect(service: Service, region: str) -> Client:
            return session.client(service, region_name=region, endpoint_url=url)

        world = self.world
        context = ProviderContext("test", lambda _attempt: "#!/bin/sh\n", world.clock)
        # The use cases ask no more of a cloud than the port has.
        world.clouds.by_name["aws"] = cast("FakeCloud", AwsProvider(context, AwsApi(connect)))
        world.regions.settings = [
            RegionSettings(provider="aws", region=region, image_ids=_images(region))
            for region in ("us-east-1", "eu-west-1")
        ]
        rows = []
        for offer in world.catalogue.index.offers:
            key = PoolKey("aws", offer.region, offer.zone, offer.instance_type, Purchase.SPOT)
            list_price = offer.on_demand_usd_hour or Decimal(1)
            rows.append((key, PriceRow(world.clock(), offer.spot_usd_hour, list_price, fixed=False)))
        self.market.set_prices(rows)

    def interrupted(self, number: int) -> Job:
        """One job that loses its machine in one of four ways and ends on another."""
        job, first = self.world.running()
        self.wait(self.dice.uniform(5, 9000))
        (self._killed, self._handed_over, self._noticed_and_taken, self._destroyed)[number % 4](first)
        self.world.perform()
        second = self.world.attempt(job)
        assert second.epoch > first.epoch
        self.world.hello(second)
        self.world.report(second, "setup_finished", seconds=1)
        self.world.report(second, "task_started", restored_from=None)
        self.wait(self.dice.uniform(5, 9000))
        self.world.report(second, "task_exited", exit_code=0)
        self.world.perform()
        self.settle(job)
        self.wait(PAUSE_SECONDS)
        return job

    def _killed(self, attempt: Attempt) -> None:
        """Taken without a notice; the bus tells of the end alone, and late."""
        self.market.kill(attempt.allocated_id)
        self.wait(self.dice.uniform(1, 50))
        self.hear(state_change(attempt, "terminated"))

    def _handed_over(self, attempt: Attempt) -> None:
        """The agent gives the job back within the notice and switches its machine off."""
        self._notice(attempt)
        self.world.report(attempt, "released", reason="taken back")
        self.market.os_shutdown(attempt.allocated_id)
        self.wait(self.dice.uniform(1, 50))
        self.hear(state_change(attempt, "terminated"))

    def _noticed_and_taken(self, attempt: Attempt) -> None:
        """The machine stays until it is taken; only a poll sees its end."""
        self._notice(attempt)
        self.wait(200)
        self.world.poll()

    def _destroyed(self, attempt: Attempt) -> None:
        """A person ends the machine, which gives the job back first; the poll sees its end."""
        self.world.steer.end_machine(attempt.cedana_id, "ann")
        self.world.perform()
        self.wait(5)
        self.world.report(attempt, "released", reason="as asked")
        self.world.perform()
        self.wait(self.dice.uniform(1, 50))
        self.world.poll()

    def _notice(self, attempt: Attempt) -> None:
        self.market.interrupt(attempt.allocated_id)
        self.hear(warning(attempt))
        self.wait(20)

    def settle(self, job: Job) -> None:
        """All machines of the job are known to be gone."""
        for _ in range(3):
            self.wait(30)
            self.world.poll()
            self.world.perform()
        assert self.world.job(job).is_settled, self.world.messages(job)

    def wait(self, seconds: float) -> None:
        """Time goes on for broker and market."""
        self.world.clock.move(seconds=seconds)
        self.market.advance()

    def hear(self, event: dict[str, object]) -> None:
        """The bus brings an event of this second."""
        self.world.interruption({**event, "time": f"{self.world.clock():%Y-%m-%dT%H:%M:%SZ}"})
        self.world.perform()


def _images(region: str) -> dict[str, str]:
    """The image that the vendor's public parameter would name."""
    return {"x86_64": public_image_id(region, PUBLIC_PARAMETERS["x86_64", False])}


@contextmanager
def _served(market: Market) -> Iterator[str]:
    """The EC2 face over the market; its address."""
    server = make_server("127.0.0.1", 0, Ec2Face(market, Faults()), threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def story() -> Iterator[tuple[Story, list[Job]]]:
    """Twenty interrupted jobs, told."""
    story = Story()
    with _served(story.market) as url:
        story.join(url)
        yield story, [story.interrupted(number) for number in range(JOBS)]


def test_the_ledger_of_twenty_interrupted_jobs_is_the_markets_bill(story: tuple[Story, list[Job]]) -> None:
    """Machine by machine and in all, the ledger is within one per cent of what the market charged."""
    told, jobs = story
    now = told.world.clock()
    bills = {machine.allocated_id: machine.cost_usd(now) for machine in told.market.everything()}
    attempts = [a for job in jobs for a in told.world.store.attempts_of(job.job_id)]
    assert sorted(a.allocated_id for a in attempts) == sorted(bills)
    for attempt in attempts:
        bill, cost = bills[attempt.allocated_id], attempt_cost(attempt, now).machine_usd
        # A machine that lived for some minutes: two seconds, for the clouds tell times in whole ones.
        assert abs(cost - bill) <= max(bill / 100, attempt.price * 2 / 3600), attempt
    total = sum(bills.values(), Decimal(0))
    assert total > 0
    assert abs(job_cost(attempts, now).machine_usd - total) <= total / 1000


def test_the_story_holds_what_makes_a_ledger_wrong(story: tuple[Story, list[Job]]) -> None:
    """Prices had moved since the catalogue was read, machines were taken back for nothing, and ends were heard late."""
    told, jobs = story
    attempts = [a for job in jobs for a in told.world.store.attempts_of(job.job_id)]
    assert any(a.plan["chosen"]["price_usd_hour"] != float(a.price) for a in attempts)
    assert {a.ended_by for a in attempts} == {"us", "cloud"}
    now = told.world.clock()
    assert any(attempt_cost(a, now).waived_usd for a in attempts)
    assert any(a.ended_by == "cloud" and not attempt_cost(a, now).waived_usd for a in attempts)
    late = [a.gone_at - a.billed_until for a in attempts if a.gone_at and a.billed_until]
    assert len(late) == len(attempts)
    assert max(late).total_seconds() > 30
