"""A machine from the inside: its power, its clock, its line to the broker, and the task that it runs."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Protocol

from local.market_model import Machine
from tests.simulation.virtual import Process, VirtualTime

Json = dict[str, Any]  # Any: JSON of the agents' protocol

CALL_SECONDS = 20.0
"""How long a call waits for its answer."""


class BrokerGone(Exception):
    """401 or 410: stop and shut down."""


class BrokerRefused(Exception):
    """Another 4xx: repeating it will not help."""


class BrokerUnreachable(Exception):
    """No answer, or one that says "later"."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How a job behaves.

    Attributes:
        setup_seconds, task_seconds, transfer_seconds: how long it takes.
        setup_fails: share of the setups that fail.
        start_fails: share of the starts that fail.
        exit_code: of the task, once it has failed as often as it does.
        fails_first: how often it fails.
        outputs: it has some.
    """

    setup_seconds: float
    task_seconds: float
    transfer_seconds: float
    setup_fails: float
    start_fails: float
    exit_code: int
    fails_first: int
    outputs: bool


class Broker(Protocol):
    """What a machine reaches over the network."""

    def request(self, path: str, who: str, body: Json, answer: Callable[[int, Json], None]) -> None:
        """Send a call; the answer may never come, or come twice."""

    def put_chunk(self, url: str, body: bytes) -> str | None:
        """Send a chunk to the bucket; its ETag, or None where its upload was given up."""

    def fetch(self, url: str) -> bytes | None:
        """What is at an address of the bucket."""


class Witness(Protocol):
    """Sees what is true on machines, whatever the broker believes."""

    def task_runs(self, job_id: str, instance_id: str, done_seconds: float, *, again: bool) -> None:
        """The task was started on this machine, for the first time there or again."""

    def ends_of(self, job_id: str) -> int:
        """How often the job's task came to an end by itself."""

    def task_stopped(self, instance_id: str) -> None:
        """No process of the task is left on it."""

    def task_ended(self, job_id: str, instance_id: str, exit_code: int) -> None:
        """The task came to its end there."""

    def gave_back(self, instance_id: str) -> None:
        """Its agent is about to say that it gives the job back."""


class Task:
    """The task on one machine: seconds of work, done one after another."""

    def __init__(self, host: "Host", done_seconds: float) -> None:
        self._host = host
        self._done = done_seconds
        self._since: datetime | None = None
        fails = host.witness.ends_of(host.job_id) < host.profile.fails_first
        self._code = 1 if fails else host.profile.exit_code
        self.started = self.ended = False

    @property
    def done_seconds(self) -> float:
        """Work done."""
        more = (self._host.time.now - self._since).total_seconds() if self._since else 0.0
        return min(self._done + more, self._host.profile.task_seconds)

    @property
    def exit_code(self) -> int | None:
        """Its exit status; None before it has one."""
        over = self._host.profile.task_seconds - self.done_seconds < 1e-6
        return self._code if self.started and over else None

    def go_on(self, ended: Callable[[], None]) -> None:
        """Work."""
        self.started = True
        self._done, self._since = self.done_seconds, self._host.time.now
        left = self._host.profile.task_seconds - self._done
        self._host.time.after(left, lambda: ended() if self.exit_code is not None else None)

    def stand_still(self) -> None:
        """Do not work."""
        self._done, self._since = self.done_seconds, None

    def archive(self) -> bytes:
        """The work directory as it is."""
        return json.dumps({"done_seconds": self.done_seconds}).encode()


class Host:
    """One machine that runs.

    Attributes:
        machine: as the market has it.
        job_id, instance_id, epoch, provider: what its user data says.
        cut_off_until: its calls get nowhere before then.
        dead: nothing on it does anything any more.
    """

    def __init__(
        self, time: VirtualTime, machine: Machine, broker: Broker, witness: Witness, profile: Profile, random: Random
    ) -> None:
        tags = machine.request.tags
        self.time, self.machine, self.broker, self.witness = time, machine, broker, witness
        self.profile, self.random = profile, random
        self.job_id, self.instance_id = tags["spotferry:job"], tags["spotferry:instance"]
        self.epoch, self.provider = int(tags["spotferry:epoch"]), machine.pool.provider
        self.cut_off_until = self.frozen_until = time.now
        self.dead = False
        self.task: Task | None = None
        self.faults_on: Callable[[str], bool] = lambda _: False
        self.note: Callable[[str], None] = lambda _: None
        self.switch_off: Callable[[], None] = lambda: None
        self._booted = time.now
        self._rate = random.uniform(0.98, 1.02)
        self._processes: list[Process] = []

    def spawn(self, name: str, run: Callable[[], None]) -> Process:
        """Start a process on it."""
        process = self.time.spawn(f"{name} of {self.instance_id[:6]}", run)
        process.frozen_until = self.frozen_until
        self._processes = [p for p in self._processes if p.alive]
        self._processes.append(process)
        return process

    def monotonic(self) -> float:
        """Seconds by its own clock, which goes a little wrong."""
        return (self.time.now - self._booted).total_seconds() * self._rate

    def pause(self, seconds: float | None) -> bool:
        """Let the process that runs wait so long by the machine's clock; whether it was woken."""
        assert self.time.current is not None
        return self.time.current.wait(None if seconds is None else max(0.0, seconds / self._rate))

    def freeze(self, until: datetime) -> None:
        """Nothing on it happens before then; a longer stall that it is in already goes on."""
        if until <= self.frozen_until:
            return
        self.frozen_until = until
        for process in self._processes:
            process.frozen_until = until
        task = self.task
        if task is not None and task.started and task.exit_code is None:
            task.stand_still()
            self.time.at(until, lambda: self._thaw(task))

    def _thaw(self, task: Task) -> None:
        if self._runs(task) and self.frozen_until <= self.time.now:
            task.go_on(self._ended)

    def _runs(self, task: Task) -> bool:
        return self.task is task and not self.dead

    def start_task(
        self, done_seconds: float, restored_from: int | None, ended: Callable[[], None], *, again: bool = False
    ) -> None:
        """Start the task with so much of its work done."""
        self.task = Task(self, done_seconds)
        self._ended = ended
        self.note(f"{self.instance_id[:6]} runs the task from {restored_from} at {done_seconds:.1f} s")
        self.witness.task_runs(self.job_id, self.instance_id, done_seconds, again=again)
        self.task.go_on(ended)

    def end_task(self) -> None:
        """End every process of the task."""
        if self.task is not None and self.task.started and not self.task.ended:
            self.task.ended = True
            if self.task.exit_code is not None:
                self.witness.task_ended(self.job_id, self.instance_id, self.task.exit_code)
            self.task.stand_still()
            self.witness.task_stopped(self.instance_id)

    def power_off(self) -> None:
        """Everything on it ends at once; whoever runs on it and calls this ends last."""
        if self.dead:
            return
        self.dead = True
        self.end_task()
        for process in self._processes:
            if process is not self.time.current:
                process.kill()

    def call(self, path: str, who: str, body: Json) -> Json:
        """One call to the broker, and its answer.

        Raises:
            BrokerGone, BrokerRefused, BrokerUnreachable: as named.
        """
        caller = self.time.current
        assert caller is not None
        answers: list[tuple[int, Json]] = []

        def answered(status: int, answer: Json) -> None:
            answers.append((status, answer))
            caller.wake()

        deadline = self.time.now.timestamp() + CALL_SECONDS
        if not self._is_cut_off() and not self.faults_on("call lost"):
            self.broker.request(path, who, body, answered)
        while not answers and (left := deadline - self.time.now.timestamp()) > 0:
            caller.wait(left)
        if not answers or self._is_cut_off() or self.faults_on("answer lost"):
            raise BrokerUnreachable(path)
        return _verdict(path, *answers[0])

    def _is_cut_off(self) -> bool:
        return self.cut_off_until > self.time.now

    def reaches_bucket(self) -> bool:
        """Whether bytes can travel now."""
        return not self._is_cut_off()


def done_seconds_in(archive: bytes | None) -> float | None:
    """The work that an archive holds; None where it holds none."""
    if archive is None:
        return None
    try:
        told: Mapping[str, float] = json.loads(archive)
    except ValueError:
        return None
    return told.get("done_seconds")


def _verdict(path: str, status: int, answer: Json) -> Json:
    if status in {401, 410}:
        raise BrokerGone(f"{path}: {status}")
    if status in {408, 429} or status >= 500:
        raise BrokerUnreachable(f"{path}: {status}")
    if status >= 400:
        raise BrokerRefused(f"{path}: {status} {answer}")
    return answer
