"""What people hand in and ask for, and how their jobs behave; all of it by the seed."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from spotferry.types.job import HOLD_STATES, Job
from spotferry.types.job_file import JobFile
from spotferry.usecases.job_ids import new_job_id
from spotferry.usecases.submit_job import Submission
from tests.simulation.clouds import OURS
from tests.simulation.deployment import Deployment
from tests.simulation.host import Profile
from tests.simulation.traffic import ASKED_AGAIN, Api, Parcel
from tests.simulation.virtual import VirtualTime

_SHA = "ab" * 32
_MOST_JOBS = 3
_BRIEF_SECONDS = 200
_LOOKS_AFTER = 0.1


def profile(random: Random) -> Profile:
    """How one job behaves."""
    return Profile(
        setup_seconds=random.uniform(2, 90),
        task_seconds=random.choice((random.uniform(20, 300), random.uniform(300, 2400))),
        transfer_seconds=random.uniform(0.5, 40),
        setup_fails=random.choice((0, 0, 0, 0.3)),
        start_fails=random.choice((0, 0, 0, 0, 0.2)),
        exit_code=random.choice((0, 0, 0, 1)),
        fails_first=random.choice((0, 0, 0, 1, 2)),
        outputs=random.random() < 0.5,
    )


class People:
    """Submit, cancel, checkpoint, retry, restore and end machines; each call is repeated until it is answered.

    Attributes:
        profiles: how each job behaves.
        accepted: jobs that somebody was told of.
        waiting: calls that are not answered yet.
    """

    def __init__(self, time: VirtualTime, api: Api, deployment: Deployment, random: Random, seed: int) -> None:
        self.profiles: dict[str, Profile] = {}
        self.accepted: set[str] = set()
        self.waiting = 0
        self._time, self._api, self._deployment, self._random, self._seed = time, api, deployment, random, seed
        self._keys = 0

    def submit_some(self, *, brief: bool) -> None:
        """Hand in one job or a few, soon; only a short one where it is to be brief."""
        for _ in range(1 if brief else self._random.choice((1, 1, *range(2, _MOST_JOBS + 1)))):
            mine, key = profile(self._random), self._key()
            mine = replace(mine, task_seconds=mine.task_seconds % _BRIEF_SECONDS) if brief else mine
            submission = Submission("ann", JobFile.model_validate(self._spec(mine)), "job.yml", None, _SHA, key)
            self._time.after(self._random.uniform(0, 60 if brief else 600), self._submission(submission, mine, key))
            self.waiting += 1

    def _key(self) -> str:
        self._keys += 1
        return f"{self._seed}-{self._keys}"

    def _submission(self, submission: Submission, mine: Profile, key: str) -> Callable[[], None]:
        self.profiles[new_job_id(OURS, "ann", key)] = mine
        parcel = Parcel(f"submit {key}", lambda: self._told_of(self._deployment.submit(submission).job))
        return lambda: self._until_answered(parcel)

    def _told_of(self, job: Job) -> None:
        self.accepted.add(job.job_id)

    def _spec(self, mine: Profile) -> Mapping[str, object]:
        draw = self._random.choice
        checkpoint = {"interval_seconds": draw((None, 0, 0, 30, 120)), "keep": draw((1, 2, 3))}
        return {
            "task": {"run": "./run"},
            "instance_specs": {"spot": draw((True, True, "fallback")), "providers": draw(([], [], ["aws"], ["gcp"]))},
            "checkpoint": {**checkpoint, "on_rebalance": draw((False, True))},
            "retry": {"max_restarts": draw((0, 0, 1, 3))},
            "max_duration_hours": draw((0, 0, 0, 0, 0.5)),
            "max_cost_usd": draw((0, 0, 0, 0, 0.02)),
            **({"outputs": ["*.bin"]} if mine.outputs else {}),
        }

    def cancel(self, job_id: str) -> None:
        """Cancel a job."""
        self._order(f"cancel {job_id[:6]}", lambda: self._deployment.steer.cancel(job_id, "ann"))

    def checkpoint(self, job_id: str) -> None:
        """Have a job checkpointed."""
        self._order(f"checkpoint {job_id[:6]}", lambda: self._deployment.steer.checkpoint(job_id, "ann"))

    def end_machine(self, instance_id: str) -> None:
        """End a machine."""
        self._order(f"end {instance_id[:6]}", lambda: self._deployment.steer.end_machine(instance_id, "ann"))

    def begin_again(self, job_id: str) -> None:
        """Have a job that is over run again, from a checkpoint or from the beginning."""
        key, order = self._key(), self._random.choice(("retry", "restore"))
        self.profiles[new_job_id(OURS, "ann", key)] = self.profiles[job_id]
        steer = self._deployment.steer
        self._order(f"{order} {job_id[:6]}", lambda: self._told_of(steer(order, job_id, "ann", key)))

    def look_after(self, job: Job) -> None:
        """Ask for a retry of a job on hold, or do not bother."""
        if job.state in HOLD_STATES and self._random.random() < _LOOKS_AFTER:
            job_id, key = job.job_id, self._key()
            self.profiles[new_job_id(OURS, "ann", key)] = self.profiles[job_id]
            self._order(f"retry {job_id[:6]}", lambda: self._retry(job_id, key))

    def _retry(self, job_id: str, key: str) -> None:
        """Of a job on hold only; one that is over a moment later becomes another job."""
        if self._deployment.store.get_job(job_id).state in HOLD_STATES:
            self._told_of(self._deployment.steer.retry(job_id, "ann", key))

    def _order(self, name: str, work: Callable[[], object]) -> None:
        self.waiting += 1
        self._until_answered(Parcel(name, work))

    def _until_answered(self, parcel: Parcel) -> None:
        answered: list[int] = []

        def answer(status: int, _body: object) -> None:
            if answered:
                return
            answered.append(status)
            if status in ASKED_AGAIN:
                self._time.after(self._random.uniform(1, 30), lambda: self._until_answered(parcel))
            else:
                self.waiting -= 1

        self._api.call(parcel, answer)
