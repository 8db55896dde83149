"""A broker, a bucket and a metadata service in one small server; it refuses what the protocol does not allow."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.unit.agent.protocol_words import BEFORE, EVENTS, PHASES, REASONS

Json = dict[str, Any]  # Any: JSON bodies


@dataclass
class Bucket:
    """Objects by name, and uploads that only a commit completes."""

    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)


class FakeBroker:
    """One job's broker; levers are plain attributes, what came is in lists.

    Attributes:
        plan: the plan that hello hands out; `url`s are made by `address`.
        directive: stands until a test changes it; after `setup_finished` it becomes `go` unless `hold_go`.
        reports, commits, offset_errors, problems: what came, and what was wrong with it.
        away_until: monotonic time before which every call of the broker gets 503.
        gone: every call gets 410.
        refuse_puts, refuse_outputs: so many PUTs, at once or of outputs, are refused with 503.
        cut_put_after: a PUT's body is read up to here, then the connection is closed; None reads all.
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
        self.chunk_bytes = 64 * 1024
        self.away_until = 0.0
        self.gone = False
        self.refuse_puts = self.refuse_outputs = 0
        self.cut_put_after: int | None = None
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
        self.server = _Server(self)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
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
        if event == "released" or (event == "task_exited" and not data["outputs"]):
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
        """Addresses for one part."""
        (part,) = body["parts"]
        self.check(set(part) == {"name", "size_bytes", "sha256"}, f"part {part}")
        upload_id = f"u{len(self.bucket.uploads)}"
        self.bucket.uploads[upload_id] = {}
        self.refuse_puts += self.refuse_outputs if body["kind"] == "outputs" else 0
        count = -(-part["size_bytes"] // self.chunk_bytes)
        urls = [f"{self.url}/upload/{upload_id}/{number}" for number in range(count)]
        address = {"name": part["name"], "upload_id": upload_id, "chunk_bytes": self.chunk_bytes, "urls": urls}
        return {"protocol": 1, "nonce": upload_id, "parts": [address], "expires_seconds": 3600}

    def commit(self, body: Json) -> Json:
        """Complete the upload if every chunk is there, as said."""
        (part,) = body["parts"]
        chunks = self.bucket.uploads[part["upload_id"]]
        content = b"".join(chunks[number] for number in sorted(chunks))
        etags = [f'"{hashlib.md5(chunks[n], usedforsecurity=False).hexdigest()}"' for n in sorted(chunks)]
        self.check(etags == part["etags"], "etags")
        self.check(hashlib.sha256(content).hexdigest() == part["sha256"], "digest")
        self.check(len(content) == part["size_bytes"], "size")
        stored = self.store(content)
        self.commits.append({**body, "content": content})
        if body["kind"] == "outputs":
            self.check("task_exited" in [name for name, _ in self.reports], "outputs before task_exited")
            self.directive = {"kind": "shut_down", "reason": "the job is DONE"}
            return self.word()
        self.check(body["reason"] in REASONS, f"reason {body['reason']}")
        self.number += 1
        saved = {"number": self.number, "engine": body["engine"], "parts": [{"name": part["name"], **stored}]}
        self.plan = {**self.plan, "checkpoints": [saved, *self.plan["checkpoints"]]}
        if self.directive["kind"] == "checkpoint":
            self.directive = {"kind": "continue", "reason": ""}
        return {**self.word(), "number": self.number}

    def check(self, good: bool, problem: str) -> None:  # noqa: FBT001
        """Remember what is wrong with a call."""
        if not good:
            self.problems.append(problem)

    def answer(self, path: str, authorization: str, body: Json) -> tuple[int, Json]:
        """Status and body for one call."""
        calls = {"hello": self.hello, "heartbeat": self.heartbeat, "report": self.report}
        calls |= {"uploads": self.uploads, "uploads/commit": self.commit}
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
            answer = calls[path](body)
            return (400, {"detail": self.problems[-1]}) if self.problems else (200, answer)


class _Server(ThreadingHTTPServer):
    """The server of one fake broker."""

    daemon_threads = True

    def __init__(self, broker: FakeBroker) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.broker = broker


class _Handler(BaseHTTPRequestHandler):
    """Broker, bucket and metadata service by path."""

    protocol_version = "HTTP/1.1"

    @property
    def broker(self) -> FakeBroker:
        """Whose call it is."""
        assert isinstance(self.server, _Server)
        return self.server.broker

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def reply(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer the call."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        """A call of the protocol."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.removeprefix("/agent/v1/")
        status, answer = self.broker.answer(path, self.headers["Authorization"], body)
        self.reply(status, json.dumps(answer).encode())

    def do_GET(self) -> None:
        """An object, the agent, or metadata."""
        if self.path.startswith("/latest/meta-data/"):
            self._metadata(self.path.removeprefix("/latest/meta-data/"))
        elif self.path.startswith("/agent/v1/agent/"):
            self.reply(200, self.broker.agent)
        else:
            content = self.broker.bucket.objects.get(self.path.removeprefix("/bucket/"))
            self.reply(404 if content is None else 200, content or b"")

    def do_PUT(self) -> None:
        """A chunk, or the metadata service's session."""
        if self.path == "/latest/api/token":
            self.reply(200, b"session")
            return
        broker = self.broker
        with broker.changed:
            broker.puts_begun += 1
            broker.changed.notify_all()
        size = int(self.headers["Content-Length"])
        if broker.cut_put_after is not None:
            self.rfile.read(min(size, broker.cut_put_after))
            self.close_connection = True
            return
        content = self.rfile.read(size)
        if broker.refuse_puts > 0:
            broker.refuse_puts -= 1
            self.reply(503, b"")
            return
        _, _, upload_id, number = self.path.split("/")
        broker.bucket.uploads[upload_id][int(number)] = content
        etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
        self.reply(200, b"", {"ETag": f'"{etag}"'})

    def _metadata(self, path: str) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != "session":
            self.reply(401, b"")
        elif path in self.broker.imds:
            self.reply(200, json.dumps(self.broker.imds[path]).encode())
        else:
            self.reply(404, b"")
