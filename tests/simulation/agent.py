"""A model of the agent: the protocol's words, obeyed as docs/agent-protocol.md says."""

import hashlib
from collections.abc import Callable

from tests.simulation.host import BrokerGone, BrokerRefused, Host, Json, done_seconds_in
from tests.simulation.mailbox import TAKEN_BACK, Ended, Mailbox

_REASONS = (TAKEN_BACK, "job_termination", "heartbeat")
_URGENT_SECONDS = 5.0
_OVER = "the task is over"
_LOOK_SECONDS = 60.0
_SOON_SECONDS = 0.01


class StepFailed(Exception):
    """A step of the job failed: the machine waits for a retry."""

    def __init__(self, event: str, **data: object) -> None:
        super().__init__(event)
        self.event = event
        self.data = data


class Agent:
    """The life of one attempt, from hello to the shutdown."""

    def __init__(self, host: Host, who: str, note: Callable[[str], None]) -> None:
        self.host = host
        self.mail = Mailbox(host, who, note)
        self._note = note
        self._plan: Json = {}
        self._started = self._task_over = self._failed = self._result_saved = False
        self._committed: int | None = None
        self._since = 0.0

    def boot(self) -> None:
        """The machine's user data starts it."""
        self.host.spawn("guard", self.mail.guard)
        self.mail.worker = self.host.spawn("agent", self._run)

    def noticed(self, deadline: str) -> None:
        """The machine's metadata service says that it is taken back."""
        if not self.host.dead:
            self.mail.end(Ended("release", TAKEN_BACK))
            self.mail.urgently("notice", {"kind": "take_back", "code": "terminate", "deadline": deadline})

    def advised(self) -> None:
        """The machine's metadata service says that it may be taken back."""
        if not self.host.dead:
            self.mail.urgently("notice", {"kind": "rebalance", "code": "rebalance-recommendation", "deadline": None})

    def terminated(self) -> None:
        """The machine goes down, and the system tells its processes."""
        if not self.host.dead:
            self.mail.end(Ended("release", TAKEN_BACK))

    def _run(self) -> None:
        try:
            self._live()
        except Ended as order:
            self._obey(order)
        except (BrokerGone, BrokerRefused) as refused:
            self._note(f"{self.host.instance_id[:6]}: the broker refuses this attempt: {refused}")
        self.mail.shut_down()

    def _live(self) -> None:
        self._ask_plan()
        self.mail.begin()
        if self._plan["mode"] != "finalize":
            self._until_it_works(self._set_up)
        self._await_go()
        if self._plan["mode"] == "finalize":
            self._finalize()
        step = self._start
        while True:
            self._until_it_works(step)
            self._tend()
            self._await_restart()
            step = self._start_again

    def _await_restart(self) -> None:
        """The order to start the failed task again, and the pause that comes with it."""
        word = self.mail.wait(lambda: self.mail.standing("retry"))
        if pause := word["directive"].get("pause_seconds"):
            self.mail.phase = "waiting"
            self.mail.wait(lambda: self.mail.standing("checkpoint"), seconds=pause)
        self._failed = self._task_over = False

    def _ask_plan(self) -> None:
        answer = self.mail.call("hello", {"agent": {"version": "sim"}, "machine": {"arch": "x86_64"}})
        self._plan = answer["plan"]

    def _until_it_works(self, step: Callable[[], object]) -> None:
        while True:
            try:
                step()
            except StepFailed as failed:
                self.mail.report(failed.event, **failed.data)
            else:
                return
            self.mail.delivered()
            self.mail.phase = "held"
            self.mail.wait(lambda: self.mail.standing("retry"))

    def _set_up(self) -> None:
        self.mail.phase = "setting_up"
        self.mail.work(self.host.profile.setup_seconds)
        if self.host.random.random() < self.host.profile.setup_fails:
            raise StepFailed("setup_failed", exit_code=1, line="make")
        self.mail.report("setup_finished", seconds=1.0)
        self.mail.delivered()
        self.mail.phase = "waiting"

    def _await_go(self) -> None:
        if self._plan["mode"] == "finalize" and self.mail.standing("continue") is not None:
            return
        self.mail.phase = "waiting"
        word = self.mail.wait(lambda: self.mail.standing("go"))
        told = {key: word["directive"][key] for key in ("mode", "checkpoints", "exit_code") if key in word["directive"]}
        self._plan = {**self._plan, **told}

    def _start(self) -> None:
        self.mail.phase = "running"
        number, done = self._restored() if self._plan["mode"] == "restore" else (None, 0.0)
        if self.host.random.random() < self.host.profile.start_fails:
            raise StepFailed("startup_failed", reason="no such file")
        self.host.start_task(done, number, self.mail.poke)
        self._runs(number)

    def _start_again(self) -> None:
        """Start the task once more, in the work directory as it left it: its last half minute is to be done anew."""
        self.mail.phase = "running"
        task = self.host.task
        assert task is not None
        self.host.start_task(max(0.0, task.done_seconds - 30), None, self.mail.poke, again=True)
        self._runs(None)

    def _runs(self, restored_from: int | None) -> None:
        self._started = True
        self._since = self.host.monotonic()
        self.mail.report("task_started", restored_from=restored_from, why_not="")

    def _restored(self) -> tuple[int, float]:
        """The newest checkpoint that can be had, and the work in it."""
        self._bytes_travel(0)
        for saved in self._plan["checkpoints"]:
            done = done_seconds_in(self.host.broker.fetch(saved["parts"][0]["url"]))
            if done is not None:
                return saved["number"], done
        raise StepFailed("startup_failed", reason="no checkpoint can be restored")

    def _bytes_travel(self, rank: int) -> None:
        self.mail.work(self.host.profile.transfer_seconds, rank)
        while not self.host.reaches_bucket():
            self.mail.work(5, rank)

    def _tend(self) -> None:
        """Look after the running task until it is over and its outputs are sent."""
        task = self.host.task
        assert task is not None
        while (reason := self._next()) != _OVER:
            self._checkpoint(reason)
            self.mail.settle()
            self._since = self.host.monotonic()
        self._is_over(1)
        self.mail.delivered()
        if self.mail.standing("retry") is None:
            self._send_outputs()

    def _next(self) -> str:
        """The reason of the next checkpoint, or that the task is over."""
        while True:
            between = self.mail.checkpoint_seconds
            left = self._since + between - self.host.monotonic() if between else _LOOK_SECONDS
            if between and left <= _SOON_SECONDS:
                return "heartbeat"
            if reason := self.mail.wait(self._ended_or_wanted, seconds=min(left, _LOOK_SECONDS)):
                return str(reason)

    def _ended_or_wanted(self) -> str | None:
        task = self.host.task
        if task is not None and task.exit_code is not None:
            return _OVER
        word = self.mail.standing("checkpoint")
        return str(word["directive"].get("reason") or "heartbeat") if word else None

    def _checkpoint(self, reason: str) -> None:
        """A checkpoint of a task that goes on."""
        task = self.host.task
        assert task is not None
        self.mail.phase = "checkpointing"
        task.stand_still()
        try:
            self.mail.work(1)
            archive = task.archive()
        finally:
            if not self.host.dead:
                task.go_on(self.mail.poke)
        self._commit("checkpoint", archive, 0, reason=reason)
        self.mail.phase = "running"

    def _commit(self, kind: str, archive: bytes, rank: int, **details: object) -> bool:
        """Send an archive and make it count; whether that worked."""
        part = {"name": f"{kind}.tar.gz", "size_bytes": len(archive), "sha256": hashlib.sha256(archive).hexdigest()}
        self.mail.delivered(rank)
        began = self.host.monotonic()
        try:
            where, etags = self._sent(kind, part, archive, rank)
            sent = {**part, "upload_id": where["parts"][0]["upload_id"], "etags": etags}
            took = {"seconds": self.host.monotonic() - began, "paused_seconds": 1.0}
            body = {"kind": kind, "nonce": where["nonce"], "engine": "workdir", "parts": [sent], **took, **details}
            answer = self.mail.call("uploads/commit", body, rank)
        except BrokerRefused as refused:
            event = "checkpoint_failed" if kind == "checkpoint" else "outputs_failed"
            self.mail.report(event, reason=str(refused))
            return False
        self._committed = answer.get("number", self._committed)
        return True

    def _sent(self, kind: str, part: Json, archive: bytes, rank: int) -> tuple[Json, list[str]]:
        """The bytes are in the bucket; begun anew when the upload was given up meanwhile."""
        while True:
            where = self.mail.call("uploads", {"kind": kind, "parts": [part]}, rank)
            self._bytes_travel(rank)
            etags = [self.host.broker.put_chunk(url, archive) for url in where["parts"][0]["urls"]]
            if None not in etags:
                return where, [etag for etag in etags if etag is not None]

    def _is_over(self, rank: int) -> None:
        """The task ended by itself: its work is made safe, its status reported."""
        task = self.host.task
        assert task is not None
        assert task.exit_code is not None
        code = task.exit_code
        self.host.end_task()
        self._task_over, self._result_saved, self._failed = True, False, code != 0
        if self._plan["outputs"]:
            self.mail.phase = "finalizing"
            over = {"task_over": True, "exit_code": code}
            self._result_saved = self._commit("checkpoint", task.archive(), rank, reason="job_termination", **over)
        self._report_exit(code)

    def _report_exit(self, code: int) -> None:
        outputs = bool(self._plan["outputs"])
        self.mail.phase = "finalizing" if outputs else "stopping"
        self.mail.report("task_exited", exit_code=code, outputs=outputs)

    def _send_outputs(self) -> None:
        if self._plan["outputs"]:
            self._commit("outputs", b'{"outputs": 1}', 0)
            self.mail.phase = "stopping"

    def _finalize(self) -> None:
        """The task was over on another machine: only its outputs are left to send."""
        self.mail.phase = "finalizing"
        self._task_over = True
        self._until_it_works(self._restored)
        self._report_exit(int(self._plan["exit_code"]))
        self._send_outputs()
        self.mail.wait(lambda: None)

    def _obey(self, order: Ended) -> None:
        """Do what the order asks; a higher one overtakes it."""
        while True:
            self._note(f"{self.host.instance_id[:6]}: {order}")
            self.mail.phase = "stopping"
            try:
                if order.kind == "release":
                    self._release(order)
                elif order.kind == "stop":
                    self._stop(order)
            except Ended as higher:
                order = higher
                continue
            except BrokerGone:
                pass
            self.host.end_task()
            return

    def _release(self, order: Ended) -> None:
        """Stop the task, make its last checkpoint, give the job back."""
        task = self.host.task
        if task is not None and self._started and not self._task_over:
            if task.exit_code is not None:
                self._is_over(order.rank)
            else:
                self.mail.work(self.host.random.uniform(0, _URGENT_SECONDS), order.rank)
                self._leave(order)
        if task is not None and self._failed and not self._result_saved:
            self._commit("checkpoint", task.archive(), order.rank, reason=_reason(order))
        self._give_back(order)

    def _leave(self, order: Ended) -> None:
        task = self.host.task
        assert task is not None
        if task.exit_code is not None:
            self._is_over(order.rank)
            return
        self.host.end_task()
        self._commit("checkpoint", task.archive(), order.rank, reason=_reason(order))

    def _stop(self, order: Ended) -> None:
        self.mail.work(self.host.random.uniform(0, 30), order.rank)
        self.host.end_task()
        self._give_back(order)

    def _give_back(self, order: Ended) -> None:
        self.host.end_task()
        self.host.witness.gave_back(self.host.instance_id)
        self.mail.report("released", checkpoint=self._committed, reason=order.reason)
        self.mail.delivered(order.rank)


def _reason(order: Ended) -> str:
    return order.reason if order.reason in _REASONS else TAKEN_BACK
