"""What people hand in and ask for, and how their jobs behave; all of it by the seed."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from spotferry.types.job import HOLD_STATES, Job
from spotferry.types.job_file import JobFile
from spotferry.usecases.submit_job import Submission
from tests.simulation.deployment import Deployment
from tests.simulation.host import Profile
from tests.simulation.traffic import Api, Parcel
from tests.simulation.virtual import VirtualTime

_SHA = "ab" * 32
_LATER = (408, 429, 500, 502, 503)
_MOST_JOBS = 3


def profile(random: Random) -> Profile:
    """How one job behaves."""
    return Profile(
        setup_seconds=random.uniform(2, 90),
        task_seconds=random.choice((random.uniform(20, 300), random.uniform(300, 2400))),
        transfer_seconds=random.uniform(0.5, 40),
        setup_fails=random.choice((0, 0, 0, 0.3)),
        start_fails=random.choice((0, 0, 0, 0, 0.2)),
        exit_code=random.choice((0, 0, 0, 1)),
        outputs=random.random() < 0.5,
    )


class People:
    """Submit, cancel, retry and end machines; each call is repeated until it is answered."""

    def __init__(self, time: VirtualTime, api: Api, deployment: Deployment, random: Random, seed: int) -> None:
        self.profiles: dict[str, Profile] = {}
        self.asked = 0
        self.accepted: set[str] = set()
        self._time, self._api, self._deployment, self._random, self._seed = time, api, deployment, random, seed

    def submit_some(self) -> None:
        """Hand in one job or a few, soon."""
        for number in range(self._random.choice((1, 1, *range(2, _MOST_JOBS + 1)))):
            self.asked += 1
            self._time.after(self._random.uniform(0, 600), self._submission(f"{self._seed}-{number}"))

    def _submission(self, key: str) -> Callable[[], None]:
        mine = profile(self._random)
        spec = JobFile.model_validate(self._spec(mine))

        def submit() -> Job:
            job = self._deployment.submit(Submission("ann", spec, "job.yml", None, _SHA, key)).job
            self.accepted.add(job.job_id)
            return job

        def begin() -> None:
            self._until_answered(Parcel(f"submit {key}", submit), lambda: None)

        name = self._deployment.submit._job_id(Submission("ann", spec, "job.yml", None, _SHA, key))
        self.profiles[name] = mine
        return begin

    def _spec(self, mine: Profile) -> Mapping[str, object]:
        spot = self._random.choice((True, True, "fallback"))
        providers = self._random.choice(([], [], ["aws"], ["gcp"]))
        outputs = {"outputs": ["*.bin"]} if mine.outputs else {}
        return {"task": {"run": "./run"}, "instance_specs": {"spot": spot, "providers": providers}, **outputs}

    def cancel(self, job_id: str) -> None:
        """Cancel a job."""
        self._order(f"cancel {job_id[:6]}", lambda: self._deployment.steer.cancel(job_id, "ann"))

    def end_machine(self, instance_id: str) -> None:
        """End a machine."""
        self._order(f"end {instance_id[:6]}", lambda: self._deployment.steer.end_machine(instance_id, "ann"))

    def look_after(self, job: Job) -> None:
        """Ask for a retry of a job on hold, or do not bother."""
        if job.state in HOLD_STATES and self._random.random() < 0.1:
            job_id = job.job_id
            self._order(f"retry {job_id[:6]}", lambda: self._retry(job_id))

    def _retry(self, job_id: str) -> None:
        """As the API does, of a job on hold only: one that is over would become another job."""
        if self._deployment.store.get_job(job_id).state in HOLD_STATES:
            self._deployment.steer.retry(job_id, "ann")

    def _order(self, name: str, work: Callable[[], Any]) -> None:  # Any: nobody looks at the answer
        self._until_answered(Parcel(name, work), lambda: None)

    def _until_answered(self, parcel: Parcel, done: Callable[[], None]) -> None:
        answered: list[int] = []

        def answer(status: int, _body: object) -> None:
            if answered:
                return
            answered.append(status)
            if status in _LATER:
                again = lambda: self._until_answered(parcel, done)  # noqa: E731
                self._time.after(self._random.uniform(1, 30), again)
            else:
                done()

        self._api.call(parcel, answer)
