"""What an agent was told, and what it has to say: orders, the word, reports in their order, the lease."""

from collections import deque
from collections.abc import Callable
from typing import Any

from tests.simulation.host import BrokerGone, BrokerRefused, BrokerUnreachable, Host, Json
from tests.simulation.virtual import Process

RANKS = {"release": 1, "stop": 2, "shut_down": 3}
TAKEN_BACK = "instance_termination"
FIRST_LEASE_SECONDS = 900.0


class Ended(Exception):
    """An order that ends the attempt overtakes what is being done."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason

    @property
    def rank(self) -> int:
        """A higher one overtakes what is done for a lower one."""
        return RANKS[self.kind]


class Mailbox:
    """Orders and words from the broker, the lease, and the calls that bring them.

    Args:
        host: the machine.
        who: the agent's authorization.
        note: keeps the step list.
    """

    def __init__(self, host: Host, who: str, note: Callable[[str], None]) -> None:
        self.phase = "setting_up"
        self.worker: Process | None = None
        self.checkpoint_seconds: float | None = None
        self._host, self._who, self._note = host, who, note
        self._order: Ended | None = None
        self._word: tuple[float, Json] = (float("-inf"), {})
        self._settled_at = float("-inf")
        self._granted_at, self._lease_ends = 0.0, FIRST_LEASE_SECONDS
        self._interval = 2.0
        self._outbox: deque[tuple[str, Json, int]] = deque()
        self._reports = 0
        self._link: Process | None = None

    def begin(self) -> None:
        """From now on the agent says that it lives."""
        self._link = self._host.spawn("link", self._run)

    def guard(self) -> None:
        """End the task and the machine when the lease is over; runs as a process of its own."""
        while (left := self._lease_ends - self._host.monotonic()) > 0:
            self._host.pause(left)
        self._note(f"{self._host.instance_id[:6]}: the lease is over")
        self._host.end_task()
        self.shut_down()

    def shut_down(self) -> None:
        """Switch the machine off."""
        host = self._host
        host.power_off()
        host.time.after(1, lambda: host.switch_off() if host.machine.live else None)

    def end(self, order: Ended) -> None:
        """An order that ends the attempt; one of lower rank changes nothing."""
        if self._order is None or order.rank > self._order.rank:
            self._order = order
        self.poke()

    def poke(self) -> None:
        """Something happened that the work may wait for."""
        if self.worker is not None:
            self.worker.wake()

    def check(self, rank: int = 0) -> None:
        """Raise `Ended` when there is an order above the rank of what is being done."""
        if self._order is not None and self._order.rank > rank:
            raise self._order

    def standing(self, kind: str) -> Json | None:
        """The newest word, if its directive is of this kind and news."""
        sent_at, word = self._word
        news = sent_at >= self._settled_at
        return word if news and word.get("directive", {}).get("kind") == kind else None

    def settle(self) -> None:
        """What was asked before is done or void."""
        self._settled_at = self._host.monotonic()

    def wait(self, ready: Callable[[], Any], *, rank: int = 0, seconds: float | None = None) -> Any:  # Any: of `ready`
        """What `ready` returns as soon as that is not None; None when the time is over.

        Raises:
            Ended: an order above the rank came first.
        """
        until = None if seconds is None else self._host.monotonic() + seconds
        while True:
            self.check(rank)
            if (answer := ready()) is not None:
                return answer
            left = None if until is None else until - self._host.monotonic()
            if left is not None and left <= 1e-6:
                return None
            self._host.pause(left)

    def work(self, seconds: float, rank: int = 0) -> None:
        """Something takes so long.

        Raises:
            Ended: an order above the rank came first.
        """
        self.wait(lambda: None, rank=rank, seconds=seconds)

    def report(self, event: str, **data: object) -> None:
        """Send a report as soon as possible; returns at once."""
        self.settle()
        self._reports += 1
        self._outbox.append((event, data, self._reports))
        if self._link is not None:
            self._link.wake()

    def delivered(self, rank: int = 0) -> None:
        """Wait until every report is with the broker."""
        self.wait(lambda: True if not self._outbox else None, rank=rank)

    def call(self, path: str, body: Json, rank: int = 0) -> Json:
        """A call that is no report, repeated until it is answered.

        Raises:
            BrokerRefused, Ended: as named.
        """
        pause = 0.5
        while True:
            self.check(rank)
            try:
                return self._once(path, body)
            except BrokerUnreachable:
                self.work(pause * self._host.random.uniform(0.5, 1), rank)
                pause = min(pause * 2, 15.0)
            except BrokerGone:
                self.end(Ended("shut_down", "gone"))
                self.check(rank)
                raise

    def urgently(self, event: str, data: Json) -> None:
        """Send a report past all that waits, from a process of its own."""

        def deliver() -> None:
            pause = 0.5
            while True:
                try:
                    self._once("report", {"event": event, "data": data})
                except BrokerUnreachable:
                    self._host.pause(pause)
                    pause = min(pause * 2, 15.0)
                except (BrokerRefused, BrokerGone):
                    return
                else:
                    return

        self._host.spawn("notice", deliver)

    def _once(self, path: str, body: Json) -> Json:
        sent_at = self._host.monotonic()
        answer = self._host.call(path, self._who, {"protocol": 1, "epoch": self._host.epoch, **body})
        self._heard(answer, sent_at)
        return answer

    def _heard(self, word: Json, sent_at: float) -> None:
        if "lease_seconds" in word and sent_at >= self._granted_at:
            self._granted_at, self._lease_ends = sent_at, sent_at + float(word["lease_seconds"])
        self._interval = max(0.05, float(word.get("heartbeat_seconds", self._interval)))
        if "directive" not in word:
            return
        self.checkpoint_seconds = word.get("checkpoint_seconds")
        kind, reason = str(word["directive"]["kind"]), str(word["directive"].get("reason") or "")
        if kind in RANKS:
            self.end(Ended(kind, reason))
        elif sent_at >= self._word[0]:
            self._word = (sent_at, word)
            self.poke()

    def _run(self) -> None:
        """Reports in their order, and heartbeats while there is none."""
        pause = 0.5
        while True:
            wait = 0.0 if self._outbox else self._interval
            if wait:
                self._host.pause(wait)
            try:
                self._say()
                pause = 0.5
            except BrokerUnreachable:
                self._host.pause(pause * self._host.random.uniform(0.5, 1))
                pause = min(pause * 2, 15.0)
            except BrokerGone:
                self.end(Ended("shut_down", "gone"))
                return

    def _say(self) -> None:
        if not self._outbox:
            self._once("heartbeat", {"phase": self.phase, "log": None})
            return
        event, data, number = self._outbox[0]
        try:
            self._once("report", {"event": event, "report": number, "data": data, "log": None})
        except BrokerRefused as refused:
            self._note(f"{self._host.instance_id[:6]}: the broker refused {event}: {refused}")
        self._outbox.popleft()
        self.poke()
