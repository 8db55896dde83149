"""A job that waits gets a machine: one placement."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from spotferry.domain import events as e
from spotferry.domain.boot import instance_id
from spotferry.domain.checkpoints import is_memory_image
from spotferry.domain.cpu_families import cpu_family
from spotferry.domain.interruption_rates import told_rate
from spotferry.domain.owed import wants_machine
from spotferry.domain.placement import Plan
from spotferry.domain.pools import pool_of
from spotferry.domain.view import PlaceJob, View
from spotferry.ports.cloud import Clouds, ObjectStore, RegionSettings, RegionStore
from spotferry.types.errors import CapacityError, Conflict, LaunchRefused, ProviderError, TryNextRegion
from spotferry.types.instance import Attempt, Candidate, LaunchRequest, Offer
from spotferry.types.job import Job, JobState
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.keys import agent_key
from spotferry.usecases.launch import AskCloud, is_the_jobs_own
from spotferry.usecases.plan_job import PlanJob

_CANDIDATES = 8
"""Candidates that one placement tries to prepare before it waits; each costs calls to a cloud."""

_PAUSES = (15, 30, 60, 120, 300, 600)
"""Seconds until the next try while nothing is free; the last one stands for all that follow."""

_TRIES = 6
"""Saves of a placement that may lose to somebody else's before it makes a pause."""

_CROWDED_PAUSE = timedelta(seconds=5)

_MANY_ATTEMPTS = 4
"""From then on a job looks at what refused it before; most never come that far, and are spared the reads."""

_REFUSAL_LASTS = timedelta(minutes=30)
"""How long a job does not ask a pool again that refused it."""

_SILENT_REGION_BAN = timedelta(minutes=1)
"""How long a region that does not answer is left alone."""


@dataclass(frozen=True, slots=True)
class AgentBundle:
    """The agent that new machines fetch: its bytes and their digest."""

    sha256: str
    body: bytes


@dataclass(frozen=True, slots=True)
class CreateInstance:
    """Chooses the cheapest candidate, saves the intent, asks the cloud."""

    deployment: str
    broker_url: str
    agent: AgentBundle
    change: ChangeJob
    plan_job: PlanJob
    ask: AskCloud
    clouds: Clouds
    regions: RegionStore
    objects: ObjectStore

    def __call__(self, job_id: str) -> Plan | None:
        """Place the job if it needs a machine now; else ask again for a launch whose answer is not known.

        Safe to repeat, and to run twice at once: of two placements one saves its intent, the other finds nothing to do.

        Returns:
            The plan that was followed; None when there was nothing to place.
        """
        for _ in range(_TRIES):
            try:
                return self._once(self.change.store.load(job_id))
            except Conflict:
                continue  # somebody changed the job meanwhile, which may need a machine all the same
        now = self.change.clock()
        self.change.queue.send([PlaceJob(job_id, now + _CROWDED_PAUSE)], now)
        return None

    def _once(self, view: View) -> Plan | None:
        if not wants_machine(view):
            self._ask_again(view)
            return None
        if view.job.next_try_at and view.job.next_try_at > self.change.clock():
            return None  # whoever set that time sent a message for it
        return self._place(view)

    def _ask_again(self, view: View) -> None:
        for attempt in view.open_attempts():
            self.ask.again(view.job.job_id, attempt)

    def _place(self, view: View) -> Plan:
        for _ in range(_CANDIDATES):
            plan = self._plan(view)
            candidate = plan.chosen
            if candidate is None:
                self._not_now(view, plan)
                return plan
            try:
                request = self._prepare(view.job, candidate)
            except LaunchRefused as refusal:
                plan = plan.model_copy(update={"chosen": None, "impossible": True, "words": refusal.message})
                self._not_now(view, plan)
                return plan
            if request is not None:
                self._launch(view, plan, candidate, request)
                return plan
        words = f"the {_CANDIDATES} cheapest that fit could not be prepared; the last one was: {plan.words}"
        plan = plan.model_copy(update={"chosen": None, "words": words})
        self._not_now(view, plan)
        return plan

    def _plan(self, view: View) -> Plan:
        """The plan; where the newest checkpoint is of processes, on machines with their processor.

        If there is none of those, a job that leaves its engine to us begins anew from its files elsewhere.
        """
        spec, avoid, owner = view.job.spec, self._avoid(view), view.job.owner
        families = self._families_to_restore_on(view.job)
        if families is not None:
            plan = self.plan_job.plan(spec, avoid, owner, families)
            if plan.chosen or spec.checkpoint.engine != "auto":
                return plan
        return self.plan_job.plan(spec, avoid, owner)

    def _families_to_restore_on(self, job: Job) -> frozenset[tuple[str, str]] | None:
        if not job.checkpoint or job.spec.checkpoint.engine not in {"auto", "criu"}:
            return None
        store = self.change.store
        newest = store.get_checkpoint(job.job_id, job.checkpoint)
        if not is_memory_image(newest):
            return None
        made_on = store.get_attempt(newest.instance_id)
        return frozenset({(made_on.provider, cpu_family(made_on.provider, made_on.instance_type))})

    def _avoid(self, view: View) -> tuple[str, ...]:
        """The pools that are taking this job's machines back, and those that refused it lately.

        A pool's own ban is short, since its capacity may come back soon: in a wide shortage it would run out before the
        job has been through all the others.
        """
        leaving = [a for a in view.open_attempts() if a.noticed or a.ending or a.advised_at]
        if view.job.epoch < _MANY_ATTEMPTS:
            return tuple(sorted({pool_of(attempt) for attempt in leaving}))
        since = self.change.clock() - _REFUSAL_LASTS
        refused = [a for a in self.change.store.attempts_of(view.job.job_id) if a.failure_code and a.gone_at]
        lately = [a for a in refused if a.gone_at and a.gone_at > since]
        return tuple(sorted({pool_of(attempt) for attempt in (*leaving, *lately)}))

    def _prepare(self, job: Job, candidate: Candidate) -> LaunchRequest | None:
        """The fixed request; None when the candidate turned out not to be launchable, and was set aside.

        Raises:
            LaunchRefused: what the job itself asks for is at fault: no other candidate would do.
        """
        offer = candidate.offer
        try:
            request = self.clouds.provider(offer.provider).prepare(
                candidate,
                self._settings(offer),
                job.spec.machine_image,
                _tags(self.deployment, job),
                disk_is_fixed=bool(job.spec.instance_specs.disk_gb),
            )
        except CapacityError as refusal:
            if is_the_jobs_own(refusal):
                raise
            self.ask.set_aside(offer.provider, candidate.market, _machine(candidate), refusal)
            return None
        except ProviderError as error:
            silent = CapacityError(error.code, error.message, scope="region", ban_for=_SILENT_REGION_BAN)
            self.ask.set_aside(offer.provider, candidate.market, _machine(candidate), silent)
            return None
        return request.model_copy(
            update={
                "agent_sha256": self.agent.sha256,
                "broker_url": self.broker_url,
                "max_price_usd_hour": _max_price(job, candidate, request),
            }
        )

    def _settings(self, offer: Offer) -> RegionSettings:
        """Of the offer's region, which may have been closed since the plan was made."""
        for settings in self.regions.regions():
            if (settings.provider, settings.region) == (offer.provider, offer.region):
                return settings
        raise TryNextRegion(
            "RegionClosed", "the region is not set up any more", offer.region, ban_for=_SILENT_REGION_BAN
        )

    def _launch(self, view: View, plan: Plan, candidate: Candidate, request: LaunchRequest) -> None:
        self._publish_agent()
        attempt = self._attempt(view.job, plan, candidate, request, self.change.clock())
        saved = self.change.on(view, e.LaunchChosen(attempt, plan.words))
        if attempt.cedana_id in saved.job.open_attempts:
            self.ask(view.job.job_id, attempt)

    def _attempt(self, job: Job, plan: Plan, candidate: Candidate, request: LaunchRequest, now: datetime) -> Attempt:
        epoch = job.epoch + 1
        attempt_id = instance_id(self.deployment, job.job_id, epoch)
        tags = {**request.tags, "spotferry:instance": attempt_id, "spotferry:epoch": str(epoch)}
        machine = _machine(candidate)
        return Attempt.model_validate(
            {
                **machine.model_dump(by_alias=False),
                "cedana_id": attempt_id,
                "job_id": job.job_id,
                "epoch": epoch,
                "market": candidate.market,
                "arch": candidate.offer.arch,
                "on_demand_usd_hour": candidate.offer.on_demand_usd_hour,
                "interruptions_per_hour": told_rate(self.plan_job.catalogue.offers().told, candidate),
                "disk_gb": request.disk_gb,
                "disk_usd_hour": _disk_usd_hour(candidate, request),
                "plan": plan.to_json(),
                "launch": request.model_copy(update={"tags": tags}),
                "requested_at": now,
                "created_at": now,
                "state": "pending",
            }
        )

    def _publish_agent(self) -> None:
        key = agent_key(self.agent.sha256)
        if self.objects.head(key) is None:
            self.objects.put(key, self.agent.body, "application/zip")

    def _not_now(self, view: View, plan: Plan) -> None:
        now = self.change.clock()
        if plan.impossible and view.job.state is JobState.PENDING:
            self.change.on(view, e.PlacementImpossible(plan.words))
            return
        pause = timedelta(seconds=_PAUSES[min(view.job.tries, len(_PAUSES) - 1)])
        self.change.on(view, e.PlacementDeferred(plan.words, now + pause))


def _machine(candidate: Candidate) -> Attempt:
    """The candidate as a machine record that is not anybody's yet."""
    offer = candidate.offer
    return Attempt.model_validate(
        {
            "job_id": "",
            "epoch": 0,
            "requested_at": datetime.fromtimestamp(0).astimezone(),
            "provider": offer.provider,
            "instance_type": offer.instance_type,
            "accelerator_name": offer.gpu_name,
            "accelerator_count": offer.gpu_count,
            "vcpus": offer.vcpus,
            "memory_gib": offer.memory_gib,
            "region": offer.region,
            "availability_zone": offer.zone,
            "price": candidate.price_usd_hour,
        }
    )


def _disk_usd_hour(candidate: Candidate, request: LaunchRequest) -> Decimal:
    """Of the disk as it is requested: it may have grown to its image's size."""
    return candidate.disk_usd_hour * request.disk_gb / candidate.disk_gb


def _max_price(job: Job, candidate: Candidate, request: LaunchRequest) -> Decimal | None:
    """What a spot machine may cost at most an hour, so that a price that rose since it was read is refused."""
    cap = job.spec.instance_specs.max_price_usd_hour
    return cap - _disk_usd_hour(candidate, request) if cap and candidate.market == "spot" else None


def _tags(deployment: str, job: Job) -> dict[str, str]:
    return {
        **{f"spotferry:label:{name}": value for name, value in job.spec.labels.items()},
        "spotferry:deployment": deployment,
        "spotferry:job": job.job_id,
        "spotferry:project": job.spec.project,
        "Name": f"spotferry {job.spec.name or job.job_id}"[:255],
    }
