"""A broker, a bucket and a metadata service in one small server; it refuses what the protocol does not allow."""

import hashlib
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from tests.unit.agent.fake_bucket import Bucket, RefusedError
from tests.unit.agent.fake_server import Server
from tests.unit.agent.protocol_words import BEFORE, EVENTS, PHASES, REASONS

Json = dict[str, Any]  # Any: JSON bodies


class FakeBroker:
    """One job's broker; levers are plain attributes, what came is in lists.

    Attributes:
        plan: the plan that hello hands out; `url`s are made by `address`.
        directive: stands until a test changes it; after `setup_finished` it becomes `go` unless `hold_go`.
        reports, commits, offset_errors, problems: what came, and what was wrong with it.
        away_until: monotonic time before which every call of the broker gets 503.
        gone: every call gets 410.
        refuse_puts, refuse_outputs: so many PUTs, at once or of outputs, are refused with 503.
        retry_exits: so many ends of the task are answered with `retry`, after `pause_seconds`.
        put_seconds: how long the bucket takes for a chunk.
        cut_gets, cut_get_after: so many answers from the bucket end after so many bytes.
        cut_put_after: a PUT's body is read up to here, then the connection is closed; None reads all.
        checkpoint_seconds: what the word says of periodic checkpoints.
        imds: documents of the metadata service by path.
        agent: the zip application.
    """

    def __init__(self, plan: Json, *, instance_id: str, token: str, epoch: int = 1, agent: bytes = b"") -> None:
        self.plan = plan
        self.credential = f"{instance_id}.{token}."
        self.epoch = epoch
        self.agent = agent
        self.directive: Json = {"kind": "continue", "reason": ""}
        self.hold_go = False
        self.heartbeat_seconds = 0.1
        self.lease_seconds = 30.0
        self.grace_seconds = 1.0
        self.checkpoint_seconds: float | None = None
        self.away_until = 0.0
        self.gone = False
        self.refuse_puts = self.refuse_outputs = self.retry_exits = 0
        self.put_seconds = self.pause_seconds = 0.0
        self.cut_put_after: int | None = None
        self.cut_gets = self.cut_get_after = 0
        self.number = 0
        self.key = ""
        self.log = b""
        self.calls: list[tuple[float, str, Json]] = []
        self.reports: list[tuple[str, Json]] = []
        self.commits: list[Json] = []
        self.problems: list[str] = []
        self.puts_begun = 0
        self.imds: dict[str, Json] = {}
        self.bucket = Bucket()
        self.changed = threading.Condition()
        self.stop = threading.Event()
        self.server = Server(self)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()

    def until(self, what: Callable[[], Any], seconds: float = 15.0) -> Any:  # Any: whatever the condition gives
        """Wait for a condition; fails with all that came when it does not hold in time."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not (result := what()):
                left = deadline - time.monotonic()
                assert left > 0, f"in vain: reports {self.reports}, problems {self.problems}, log {self.log!r}"
                self.changed.wait(min(left, 0.05))
        return result

    def reported(self, event: str) -> list[Json]:
        """Data of the reports of one kind, in order."""
        return [data for name, data in self.reports if name == event]

    def phase(self) -> str:
        """What the last heartbeat said; "" before the first."""
        return next((str(body["phase"]) for _, path, body in reversed(self.calls) if path == "heartbeat"), "")

    def store(self, content: bytes) -> Json:
        """Put an object into the bucket; its address, size and digest."""
        digest = hashlib.sha256(content).hexdigest()
        self.bucket.objects[digest] = content
        return {"url": f"{self.url}/bucket/{digest}", "sha256": digest, "size_bytes": len(content)}

    def word(self) -> Json:
        """The word now."""
        return {
            "protocol": 1,
            "directive": self.directive,
            "heartbeat_seconds": self.heartbeat_seconds,
            "lease_seconds": self.lease_seconds,
            "checkpoint_seconds": self.checkpoint_seconds,
            "log_offset": len(self.log),
        }

    def hello(self, body: Json) -> Json:
        """The plan."""
        self.check(set(body["machine"]) >= {"arch", "kernel", "cpus", "memory_mib"}, "hello lacks facts")
        self.check(all(isinstance(v, str) for v in body["machine"].values()), "facts are strings")
        return {
            **self.word(),
            "job_id": "j-1",
            "epoch": self.epoch,
            "plan": self.plan,
            "grace_seconds": self.grace_seconds,
            "log_offset": 0,
        }

    def heartbeat(self, body: Json) -> Json:
        """A heartbeat."""
        self.check(body["phase"] in PHASES, f"phase {body['phase']}")
        self.take_log(body["log"])
        return self.word()

    def report(self, body: Json) -> Json:
        """A report; the order of events is checked."""
        event, data = body["event"], body["data"]
        self.check(set(data) == EVENTS.get(event, set()), f"{event}: {data}")
        names = [name for name, _ in self.reports]
        needed = BEFORE.get(event)
        finalizes = self.plan["mode"] == "finalize"
        self.check(finalizes or needed is None or needed in names, f"{event} before {needed}")
        self.take_log(body["log"])
        self.reports.append((event, data))
        if event == "setup_finished" and not self.hold_go:
            self.directive = {"kind": "go", "reason": ""}
        if event == "task_started":
            self.directive = {"kind": "continue", "reason": ""}
        if event == "task_exited" and self.retry_exits > 0:
            self.retry_exits -= 1
            pause = {"pause_seconds": self.pause_seconds} if self.pause_seconds else {}
            self.directive = {"kind": "retry", "reason": "a restart", **pause}
        elif event == "released" or (event == "task_exited" and not data["outputs"]):
            self.directive = {"kind": "shut_down", "reason": "over"}
        return self.word()

    def take_log(self, log: Json | None) -> None:
        """Keep the log; a piece must join what is there."""
        if log is None:
            return
        text = log["text"].encode()
        self.check(0 < len(text) <= 256 * 1024, f"log of {len(text)} bytes")
        self.check(log["offset"] <= len(self.log), f"log at {log['offset']}, have {len(self.log)}")
        have = self.log[log["offset"] :]
        self.check(text.startswith(have) or have.startswith(text), "the log changed")
        self.log = self.log[: log["offset"]] + max(text, have, key=len)

    def uploads(self, body: Json) -> Json:
        """A place for each part."""
        self.check(all(set(part) == {"name"} for part in body["parts"]), f"parts {body['parts']}")
        self.refuse_puts += self.refuse_outputs if body["kind"] == "outputs" else 0
        return self.bucket.begin(self.url, [part["name"] for part in body["parts"]])

    def addresses(self, body: Json) -> Json:
        """More of them."""
        self.check(set(body) >= {"kind", "nonce", "name"}, f"addresses for {body}")
        return {"protocol": 1, **self.bucket.addresses(self.url, body["upload_id"], body["from_chunk"])}

    def commit(self, body: Json) -> Json:
        """Complete the uploads if every chunk is there, as said; take over what earlier checkpoints have."""
        contents = {part["name"]: self._content(part) for part in body["parts"]}
        stored = [{"name": name, **self.store(content)} for name, content in contents.items()]
        content = next(iter(contents.values()))
        self.commits.append({**body, "content": content, "contents": contents})
        if body["kind"] == "outputs":
            self.check("task_exited" in [name for name, _ in self.reports], "outputs before task_exited")
            self.directive = {"kind": "shut_down", "reason": "the job is DONE"}
            return self.word()
        self.check(body["reason"] in REASONS, f"reason {body['reason']}")
        self.check({"arch", "kernel", "cpu_flags"} <= set(body["machine"]), f"machine {body['machine']}")
        self.number += 1
        saved = {"number": self.number, "engine": body["engine"], "parts": stored}
        self.plan = {**self.plan, "checkpoints": [saved, *self.plan["checkpoints"]]}
        if self.directive["kind"] == "checkpoint":
            self.directive = {"kind": "continue", "reason": ""}
        return {**self.word(), "number": self.number}

    def _content(self, part: Json) -> bytes:
        if "same_as" not in part:
            return self.bucket.complete(part)
        known = [c for c in self.plan["checkpoints"] if c["number"] == part["same_as"]]
        same = {(p["name"], p["sha256"], p["size_bytes"]) for c in known for p in c["parts"]}
        if (part["name"], part["sha256"], part["size_bytes"]) not in same:
            raise RefusedError(f"checkpoint {part['same_as']} has no such part")
        return self.bucket.objects[part["sha256"]]

    def check(self, good: bool, problem: str) -> None:  # noqa: FBT001
        """Remember what is wrong with a call."""
        if not good:
            self.problems.append(problem)

    def answer(self, path: str, authorization: str, body: Json) -> tuple[int, Json]:
        """Status and body for one call."""
        calls = {"hello": self.hello, "heartbeat": self.heartbeat, "report": self.report}
        calls |= {"uploads": self.uploads, "uploads/addresses": self.addresses, "uploads/commit": self.commit}
        with self.changed:
            self.calls.append((time.monotonic(), path, body))
            self.changed.notify_all()
            if time.monotonic() < self.away_until:
                return 503, {"title": "away"}
            if self.gone:
                return 410, {"detail": "the attempt is over"}
            key = authorization.removeprefix(f"Bearer {self.credential}")
            self.key = self.key or key
            if key != self.key or len(key) != 64:
                return 401, {"detail": "wrong key"}
            self.check(body["protocol"] == 1 and body["epoch"] == self.epoch, f"{path}: {body}")
            try:
                answer = calls[path](body)
            except RefusedError as refused:
                return 422, {"detail": str(refused)}
            return (400, {"detail": self.problems[-1]}) if self.problems else (200, answer)
