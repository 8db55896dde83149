"""One run: a deployment, its clouds, its people and its machines in virtual time, all of it by one seed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from local.market_model import EventKind, MarketEvent, Timings
from local.market_model import LaunchRequest as Asked
from local.market_model import MachineState as State
from spotferry.domain.pace import Pace
from spotferry.runtime.queues import Queues
from spotferry.store.memory import MemoryStore
from tests.simulation import closing
from tests.simulation.agent import Agent
from tests.simulation.bus_events import envelope
from tests.simulation.clouds import OURS, SimCloud, SimMarket, tags_of
from tests.simulation.deployment import Deployment, Store
from tests.simulation.faults import Faults
from tests.simulation.handlers import Handlers
from tests.simulation.happenings import Happenings, Scene
from tests.simulation.host import Host
from tests.simulation.invariants import Referee, Violation
from tests.simulation.offers import AWS, BEGIN, GCP, SHAPE, pool_key
from tests.simulation.people import People
from tests.simulation.steps import Steps
from tests.simulation.traffic import FUNCTION_SECONDS, Api, Bus, Functions, Owed, Parcel, QueueService
from tests.simulation.virtual import VirtualTime
from tests.unit.usecases.wire import token_of

Json = dict[str, Any]  # Any: JSON of the agents' protocol
_LONGEST = timedelta(hours=12)
_CALM_ATTENTION = timedelta(seconds=10)
_STRAGGLERS = timedelta(minutes=7)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        seed: it can be run again by this.
        violations: invariants that did not hold.
        steps: what happened, with its time, for people.
        struck: faults by kind.
        states: final states of the jobs.
        figures: jobs, machines, runs of functions, seconds of virtual time.
    """

    seed: int
    violations: tuple[Violation, ...]
    steps: tuple[tuple[datetime, str], ...]
    struck: Mapping[str, int]
    states: Mapping[str, int]
    figures: Mapping[str, int]


class World:
    """Everything that there is in one run.

    Args:
        seed: of all that is drawn.
        store: the records; in memory when left out.
        brief: one short job, a short storm and agents that call less often, where records are slow.
    """

    def __init__(self, seed: int, store: Store | None = None, *, brief: bool = False) -> None:
        self.seed = seed
        self._brief = brief
        random = Random(seed)
        self.steps: list[tuple[datetime, str]] = []
        self.time = time = VirtualTime(BEGIN)
        self.faults = Faults(Random(f"{seed} faults"))
        self.referee = Referee(time, self.note)
        awaited = Steps(time, self.faults, self.note)
        self.functions = Functions(time, awaited, self.referee, self.note)
        self.market = SimMarket(time, seed, _timings(random))
        self.queue_service = QueueService(time, self.functions, self.faults, self.note)
        clouds = [SimCloud(name, self.market, self.referee, by_name=name == GCP) for name in (AWS, GCP)]
        queues = Queues("placement", "destroy", lambda: self.queue_service)
        kept = MemoryStore() if store is None else store
        self.deployment = Deployment(
            time, awaited, self.referee, kept, queues, clouds, Pace(attention=_CALM_ATTENTION) if brief else Pace()
        )
        self.handlers = Handlers(self.deployment, self.referee)
        self.bus = Bus(time, self.functions, self.faults, self.handlers.event)
        self.api = Api(time, self.functions, self.faults, self.handlers.settled)
        self.people = People(time, self.api, self.deployment, random, seed)
        self.agents: dict[str, Agent] = {}
        self.hosts: dict[str, Host] = {}
        memory = kept if isinstance(kept, MemoryStore) else None
        scene = Scene(time, self.faults, self.market, self.hosts, self.people, self.referee, memory, self.note)
        self.happenings = Happenings(scene, random)
        self._debts: dict[str, list[Owed]] = {}
        self._random = random
        self._calm_at = BEGIN + timedelta(minutes=random.uniform(*((5, 20) if brief else (10, 100))))
        self._over_at: datetime | None = None
        self._connect()

    def _connect(self) -> None:
        """What could not be handed over before it was there."""
        self.queue_service.perform = self.handlers.message
        self.referee.machines = self.market.everything
        self.referee.then = self.happenings.follow
        self.referee.read_object = self.deployment.raw_objects.stored.get

    def note(self, words: str) -> None:
        """One line of the step list."""
        self.steps.append((self.time.now, words))

    def run(self) -> Outcome:
        """Run to the end, or to the first violation."""
        self._sell_a_foreign_machine()
        self.market.subscribe(self._on_market)
        self.people.submit_some(brief=self._brief)
        self.happenings.plan((self._calm_at - BEGIN).total_seconds() / 3600)
        self.time.at(self._calm_at, self._calm)
        self.time.after(self._random.uniform(0, closing.POLL_SECONDS), self._tick)
        self.time.run(BEGIN + _LONGEST, lambda: bool(self.referee.violations) or self._is_over())
        if not self.referee.violations:
            store = self.deployment.raw_store
            closing.check(self.referee, store, self.people.accepted, self._calm_at, self.time.now)
        return self._outcome()

    def _outcome(self) -> Outcome:
        states = Counter(truth.job.state.value for truth in self.referee.jobs.values())
        figures = {
            "jobs": len(self.referee.jobs),
            "machines": len(self.market.everything()) - 1,
            "function runs": self.functions.runs,
            "virtual seconds": int((self.time.now - BEGIN).total_seconds()),
        }
        return Outcome(
            self.seed, tuple(self.referee.violations), tuple(self.steps), dict(self.faults.struck), states, figures
        )

    def _calm(self) -> None:
        self.note("the storm is over")
        self.happenings.calm()

    def _tick(self) -> None:
        """Once a minute: the schedule, and people who look after what is on hold."""
        self.time.after(closing.POLL_SECONDS, self._tick)
        if not self.faults.strikes("poll missed"):
            self.functions.run(Parcel("poll", self.handlers.poll), FUNCTION_SECONDS, lambda *_: None)
        for truth in list(self.referee.jobs.values()):
            self.people.look_after(truth.job)
        if self.time.now < self._calm_at or self.people.waiting:
            return
        over = closing.all_over(self.referee, self.deployment.raw_store, self.people.accepted)
        if over and self._over_at is None:
            self._over_at = self.time.now + _STRAGGLERS

    def _is_over(self) -> bool:
        return self._over_at is not None and self.time.now >= self._over_at

    def _sell_a_foreign_machine(self) -> None:
        pool = pool_key(AWS, "us-east-1", "us-east-1a", "m5.large", "on_demand")
        tags = {"spotferry:deployment": "another", "spotferry:job": "j-another", "spotferry:instance": "i-another"}
        self.market.launch(Asked(pool, SHAPE, "another", "another", tags=tags))

    def _on_market(self, event: MarketEvent) -> None:
        """Something happened to a machine: the cloud tells the bus, and the machine itself feels it."""
        machine = self.market._machines[event.allocated_id]
        if tags_of(machine).get("spotferry:deployment") != OURS:
            return
        deadline = machine.notice.due_at if machine.notice else None
        self.bus.put(f"{event.value} of {event.allocated_id[:8]}", envelope(event, deadline))
        if event.kind is EventKind.INTERRUPTION and deadline is not None and event.provider == AWS:
            agent = self.agents.get(event.allocated_id)
            if agent is not None:
                self.time.after(self._random.uniform(0.1, 2.1), partial(agent.noticed, deadline.isoformat()))
        if event.kind is EventKind.REBALANCE and event.allocated_id in self.agents:
            self.time.after(self._random.uniform(0.1, 2.1), self.agents[event.allocated_id].advised)
        if event.kind is EventKind.STATE:
            self._on_state(event.allocated_id, event.value)

    def _on_state(self, allocated_id: str, state: str) -> None:
        self.note(f"{allocated_id[:8]} is {state}")
        if state == State.PENDING:
            machine = self.market._machines[allocated_id]
            self.time.at(self.time.now, lambda: self.referee.sold(machine, by_name=machine.pool.provider == GCP))
        elif state == State.RUNNING:
            self.time.after(self._random.uniform(2, 20), partial(self._boot, allocated_id))
        elif state == State.TERMINATED and allocated_id in self.hosts:
            self.hosts[allocated_id].power_off()
        elif state in {State.SHUTTING_DOWN, State.STOPPING} and allocated_id in self.agents:
            self.agents[allocated_id].terminated()

    def _boot(self, allocated_id: str) -> None:
        """The machine is up, and its user data starts the agent."""
        machine = self.market.get(allocated_id)
        if machine.state is State.TERMINATED:
            return
        tags = tags_of(machine)
        profile = self.people.profiles[tags["spotferry:job"]]
        random = Random(f"{self.seed} {tags['spotferry:instance']}")
        host = Host(self.time, machine, self, self.referee, profile, random)
        host.faults_on, host.note = self.faults.strikes, self.note
        host.switch_off = partial(self.market.os_shutdown, allocated_id)
        key = token_of(host.instance_id, -1)
        who = f"Bearer {host.instance_id}.{token_of(host.instance_id, host.epoch)}.{key}"
        self.hosts[allocated_id] = host
        self.agents[allocated_id] = Agent(host, who, self.note)
        self.agents[allocated_id].boot()

    def request(self, path: str, who: str, body: Json, answer: Any) -> None:  # Any: the host's own callback
        """A call of an agent's."""
        name = f"{path} {body.get('event', '')} of {who[7:13]}"
        same = f"{name} {body.get('report', '')} {body.get('nonce', '')} {(body.get('data') or {}).get('kind', '')}"
        debts = self._debts.setdefault(same, [])
        self.api.call(Parcel(name, lambda: self.handlers.agent(path, who, body), debts), answer)

    def put_chunk(self, url: str, body: bytes) -> str | None:
        """Bytes of an agent's."""
        upload_id = url.split(":")[2]
        objects = self.deployment.raw_objects
        return objects.put_chunk(url, body) if upload_id in objects.uploads else None

    def fetch(self, url: str) -> bytes | None:
        """What is at an address."""
        return self.deployment.raw_objects.stored.get(url.removeprefix("memory:get:").partition("?")[0])


def _timings(random: Random) -> Timings:
    """How fast the clouds of one run are."""
    boot, shutdown = random.uniform(5, 50), random.uniform(2, 30)
    return Timings(boot=timedelta(seconds=boot), shutdown=timedelta(seconds=shutdown))
