"""The agent's line to the broker: heartbeats, reports in order, and the log that rides along."""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Deque, Iterator, Optional, Tuple

from spotferry.agent.broker import Broker, Json
from spotferry.agent.clock import Check, Clock, patiently, pauses
from spotferry.agent.console import say
from spotferry.agent.errors import BrokerGone, BrokerRefused, BrokerUnreachable, Data, Order
from spotferry.agent.joblog import Chunk, JobLog
from spotferry.agent.lease import Lease
from spotferry.agent.orders import Orders

Report = Tuple[str, Data, int]
"""An event, its data, and the number of the report."""


class Link:
    """Calls the broker from a thread of its own (`run`), so that nobody else waits for it.

    Reports are kept until they are delivered, in order; before a report goes up, the log up to it does. The attribute
    `phase` is what heartbeats say; anybody may set it.
    """

    def __init__(self, broker: Broker, orders: Orders, lease: Lease, log: JobLog, clock: Clock) -> None:
        self.phase = "setting_up"
        self._broker = broker
        self._orders = orders
        self._lease = lease
        self._log = log
        self._clock = clock
        self._outbox: Deque[Tuple[Report, int]] = deque()
        self._reports = 0
        self._changed = threading.Condition()
        self._interval = 2.0
        self._due_at = clock.monotonic()
        self._pauses: Iterator[float] = pauses()

    def report(self, event: str, data: Data) -> None:
        """Send a report as soon as possible; returns at once."""
        self._orders.settle()
        with self._changed:
            self._reports += 1
            self._outbox.append(((event, data, self._reports), self._log.size_bytes()))
            self._due_at = self._clock.monotonic()
            self._changed.notify_all()

    def delivered(self, check: Check) -> None:
        """Wait until every report is with the broker.

        Args:
            check: called several times a second; whatever it raises ends the wait.
        """
        while True:
            check()
            with self._changed:
                if not self._outbox:
                    return
                self._changed.wait(0.2)

    def call(self, path: str, body: Json, check: Check) -> Json:
        """A call that is no report, repeated until it is answered; what its answer says as the word is heard.

        Raises:
            BrokerRefused: it is wrong.
        """

        def once() -> Json:
            sent_at = self._clock.monotonic()
            answer = self._broker.call(path, body)
            self.heard(answer, sent_at)
            return answer

        try:
            return patiently(once, again_on=(BrokerUnreachable,), clock=self._clock, check=check)
        except BrokerGone as gone:
            self._gone(gone)
            check()
            raise

    def urgently(self, event: str, data: Data) -> None:
        """Send a report from a thread of its own, past all that waits: a notice, which is in no order with the rest."""

        def deliver() -> None:
            try:
                self.call("report", {"event": event, "data": data, "log": None}, lambda: None)
            except (BrokerRefused, BrokerGone) as error:
                say(f"the {event} was not taken: {error}")

        threading.Thread(target=deliver, name=f"report-{event}", daemon=True).start()

    def heard(self, word: Json, sent_at: float) -> None:
        """Take an answer's lease, interval and directive; one without them (an address list) changes nothing."""
        if "lease_seconds" in word:
            self._lease.renew(sent_at, float(word["lease_seconds"]))
        if "heartbeat_seconds" in word:
            with self._changed:
                self._interval = max(0.05, float(word["heartbeat_seconds"]))
        if "directive" in word:
            self._orders.heard(word, sent_at)

    def run(self) -> None:
        """Call when a call is due, until the broker wants no more."""
        while self._step(self._wait):
            pass

    def _wait(self) -> None:
        with self._changed:
            while (left := self._due_at - self._clock.monotonic()) > 0:
                self._changed.wait(left)

    def _step(self, wait: Callable[[], None]) -> bool:
        """One call; False when it was the last."""
        wait()
        chunk = self._log.chunk()
        first = self._first_behind(chunk)
        sent_at = self._clock.monotonic()
        try:
            word = self._send(first, chunk)
        except BrokerGone as gone:
            self._gone(gone)
            return False
        except BrokerUnreachable as error:
            say(f"no answer from the broker ({error}); {self._lease.left():.0f} s of the lease are left")
            self._due_in(next(self._pauses))
            return True
        except BrokerRefused as error:
            say(f"the broker refused {first[0] if first else 'a heartbeat'}: {error}")
            self._done(first, hurry=bool(first))
            return True
        self._pauses = pauses()
        further = self._acknowledge(word.get("log_offset"), chunk)
        self.heard(word, sent_at)
        self._done(first, hurry=further and self._log.more_after(chunk))
        return True

    def _first_behind(self, chunk: Optional[Chunk]) -> Optional[Report]:
        """The first report, unless text from before it is still behind this chunk."""
        with self._changed:
            if not self._outbox:
                return None
            report, log_bytes = self._outbox[0]
        return report if chunk is None or chunk.raw_end >= log_bytes else None

    def _acknowledge(self, offset: Optional[int], chunk: Optional[Chunk]) -> bool:
        """Note how far the broker has the log; one that does not say has what it was sent."""
        if offset is None:
            return chunk is not None and self._log.acknowledge(chunk.end, chunk)
        return self._log.acknowledge(offset, chunk)

    def _send(self, report: Optional[Report], chunk: Optional[Chunk]) -> Json:
        log = {"offset": chunk.offset, "text": chunk.text} if chunk else None
        if report:
            event, data, number = report
            return self._broker.call("report", {"event": event, "data": data, "report": number, "log": log})
        return self._broker.call("heartbeat", {"phase": self.phase, "log": log})

    def _done(self, report: Optional[Report], *, hurry: bool) -> None:
        """A call was answered; the next is due at once when there is more to say."""
        with self._changed:
            if report:
                self._outbox.popleft()
            self._due_at = self._clock.monotonic() + (0 if hurry or self._outbox else self._interval)
            self._changed.notify_all()

    def _due_in(self, seconds: float) -> None:
        with self._changed:
            self._due_at = self._clock.monotonic() + seconds

    def _gone(self, gone: BrokerGone) -> None:
        say(f"the attempt is over: {gone}")
        self._orders.end(Order("shut_down", str(gone)))
