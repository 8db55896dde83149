"""The broker's functions over simulated services: the real use cases, every awaited step of which may go wrong."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

from spotferry.domain.pace import Pace
from spotferry.domain.view import Decision, Effect, Policy, View
from spotferry.ports.cloud import CloudProvider, Clouds, ObjectStore
from spotferry.ports.store import BanStore, JobStore, SightingStore
from spotferry.runtime.queues import Queues
from spotferry.types.job import Checkpoint, Job, TimelineEntry
from spotferry.usecases.agents import Authenticate
from spotferry.usecases.begin_again import BeginAgain
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.check_launch import CheckLaunch
from spotferry.usecases.create_instance import AgentBundle, CreateInstance
from spotferry.usecases.destroy_instance import DestroyInstance
from spotferry.usecases.greet_agent import GreetAgent
from spotferry.usecases.handle_interruption import HandleInterruption
from spotferry.usecases.hear_agent import HearAgent
from spotferry.usecases.inputs import CheckInputs
from spotferry.usecases.launch import AskCloud
from spotferry.usecases.plan_job import PlanJob
from spotferry.usecases.poll_status import PollStatus
from spotferry.usecases.pool_history import ReadHistory
from spotferry.usecases.prune_checkpoints import PruneCheckpoints
from spotferry.usecases.reap import Reap
from spotferry.usecases.reap_rounds import Rounds
from spotferry.usecases.steer_job import SteerJob
from spotferry.usecases.submit_job import SubmitJob
from spotferry.usecases.take_archive import TakeArchive
from spotferry.usecases.word import SayWord
from tests.fakes import FakeDefaults, FakeObjects, FakeProbe, FakeRegions, FakeSecrets
from tests.simulation.bus_events import parse
from tests.simulation.clouds import OURS, SimCloud
from tests.simulation.invariants import Referee
from tests.simulation.offers import AWS, GCP, REGIONS, Catalogue
from tests.simulation.steps import AnswerLost, Awaited, Steps
from tests.simulation.virtual import VirtualTime
from tests.unit.usecases.wire import token_of

BUNDLE = AgentBundle(sha256="cd" * 32, body=b"the agent")


class Store(JobStore, BanStore, SightingStore, Protocol):
    """Jobs, bans and the reaper's notes in one, as both stores are."""


class WatchedStore:
    """The store, with the referee looking at all that is written."""

    def __init__(self, store: Store, referee: Referee, steps: Steps) -> None:
        self._store = store
        self._referee = referee
        self._steps = steps

    def __getattr__(self, name: str) -> Any:  # Any: the store's own
        return getattr(self._store, name)

    def create_job(self, job: Job, entry: TimelineEntry, taken_over: Sequence[Checkpoint] = ()) -> None:
        """Seen once it is written."""
        self._store.create_job(job, entry, taken_over)
        self._referee.created(job, entry, taken_over)

    def save(self, before: View, decision: Decision) -> None:
        """Seen once it is written."""
        self._store.save(before, decision)
        if decision.entry is not None:
            invocation = self._steps.invocation
            if invocation is not None:
                invocation.unsent.setdefault(before.job.job_id, set()).update(decision.effects)
            self._referee.saved(before, decision)


class WatchedQueue:
    """The queues, with a look at what was sent."""

    def __init__(self, queues: Queues, steps: Steps, time: VirtualTime) -> None:
        self._queues = queues
        self._steps = steps
        self._time = time
        self.sent: dict[Effect, Any] = {}  # Any: times

    def hear_again(self, envelope: Mapping[str, object]) -> None:
        """An event about a machine that nobody knows yet."""
        self._queues.hear_again(envelope)

    def send(self, effects: Iterable[Effect], now: Any) -> None:  # Any: a time
        """Seen once all were taken."""
        effects = list(effects)
        try:
            self._queues.send(effects, now)
        except AnswerLost:
            self._took(effects)
            raise
        self._took(effects)

    def _took(self, effects: Iterable[Effect]) -> None:
        self.sent.update(dict.fromkeys(effects, self._time.now))
        invocation = self._steps.invocation
        if invocation is not None:
            for unsent in invocation.unsent.values():
                unsent.difference_update(effects)


class WatchedObjects(FakeObjects):
    """The bucket, with the referee looking at what leaves it."""

    def __init__(self, referee: Referee) -> None:
        super().__init__()
        self._referee = referee

    def delete(self, keys: Sequence[str]) -> None:
        """Seen before they are gone."""
        self._referee.deleted(keys)
        super().delete(keys)


class AwaitedCloud(Awaited):
    """One cloud behind steps. Its price at launch is a method of the class: a protocol is told by that."""

    def launch_price(self, attempt: object) -> Any:  # Any: a price or None
        """A step like any other."""
        return self.__getattr__("launch_price")(attempt)


class AwaitedByName(AwaitedCloud):
    """A cloud that tells later how a launch ended that it had accepted."""

    def settle_launch(self, attempt: object) -> Any:  # Any: a refusal or None
        """A step like any other."""
        return self.__getattr__("settle_launch")(attempt)


@dataclass(frozen=True)
class AwaitedClouds:
    """The clouds of the deployment."""

    by_name: Mapping[str, CloudProvider]

    def provider(self, name: str) -> CloudProvider:
        """The cloud of this name."""
        return self.by_name[name]


class Deployment:
    """All use cases over one store, bucket, queues and clouds."""

    def __init__(
        self,
        time: VirtualTime,
        steps: Steps,
        referee: Referee,
        store: Store,
        queues: Queues,
        clouds: Iterable[SimCloud],
        pace: Pace,
    ) -> None:
        self.clock = time
        self.raw_store = store
        self.raw_objects = WatchedObjects(referee)
        self.queues = WatchedQueue(queues, steps, time)
        self.store = cast("Store", Awaited(WatchedStore(store, referee, steps), "store", steps))
        self.objects = cast("ObjectStore", Awaited(self.raw_objects, "bucket", steps, _FREE))
        self.queue = Awaited(self.queues, "queue", steps)
        names = frozenset({"name"})
        kinds = {True: AwaitedByName, False: AwaitedCloud}
        providers = {c.name(): cast("CloudProvider", kinds[c.by_name](c, "cloud", steps, names)) for c in clouds}
        self.clouds: Clouds = AwaitedClouds(providers)
        self.regions = FakeRegions(*REGIONS)
        self.change = ChangeJob(self.store, cast("Any", self.queue), self.clock)
        self.ask = AskCloud(self.change, self.clouds, self.store)
        self.say = SayWord(self.store, self.objects, pace, self.clock)
        self.hear = HearAgent(self.change, self.say, self.objects, self.ask)
        prune = PruneCheckpoints(self.store, self.objects, self.clock)
        self.archive = TakeArchive(self.change, self.say, self.hear, self.objects, prune)
        self.greet = GreetAgent(self.change, self.say, FakeSecrets(), FakeDefaults())
        self.authenticate = Authenticate(self.change, token_of)
        self.interruption = HandleInterruption(self.ask, parse)
        self.poll = PollStatus(self.ask, self.clouds)
        self.check_launch = CheckLaunch(self.ask, self.clouds)
        self.destroy = DestroyInstance(self.ask, self.clouds)
        self.steer = SteerJob(self.change, BeginAgain(OURS, self.change, self.objects))
        self.reap = Reap(self.store, self.clouds, self.clock, Policy().visibility, Rounds())

    @cached_property
    def plan_job(self) -> PlanJob:
        """Plans."""
        history = ReadHistory(self.store, self.clock)
        return PlanJob(Catalogue(), self.regions, self.store, self.clock, history, frozenset({AWS, GCP}))

    @cached_property
    def create(self) -> CreateInstance:
        """Placements."""
        return CreateInstance(
            OURS,
            "https://broker",
            BUNDLE,
            self.change,
            self.plan_job,
            self.ask,
            self.clouds,
            self.regions,
            self.objects,
        )

    @cached_property
    def submit(self) -> SubmitJob:
        """Submissions."""
        inputs = CheckInputs("bucket", self.objects, FakeProbe())
        queue = cast("Any", self.queue)
        return SubmitJob(OURS, "bucket", self.store, self.objects, queue, self.plan_job, self.clock, inputs)


_FREE = frozenset({"url_to_get", "url_to_put", "urls_to_put_chunks"})
"""Addresses are made without asking anybody."""
