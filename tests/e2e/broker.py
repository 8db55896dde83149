"""A person's way through a running local cloud: jobs handed in, watched and steered over HTTP."""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx

from cli.packing import pack
from local.machine_processes import processes_of
from local.stack import Stack, poll

Json = dict[str, Any]  # Any: JSON of the API

DEADLINE_SECONDS = 150
LOOK_SECONDS = 0.1


def eventually(what: str, look: Callable[[], Any], seconds: float = DEADLINE_SECONDS) -> Any:
    """The first true answer of `look` before the deadline; fails with `what` and the last answer after it."""
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(LOOK_SECONDS)
    return answer


class Broker:
    """The API of one local cloud."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._http = httpx.Client(base_url=stack.api_url, timeout=60)

    def __enter__(self) -> Self:
        """Itself; its connection is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._http.close()

    def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """One request, whatever its status."""
        return self._http.request(method, path, **request)

    def get(self, path: str, **query: str) -> Json:
        """One document."""
        answer = self.send("GET", path, params=query)
        assert answer.is_success, answer.text
        document: Json = answer.json()
        return document

    def submit(self, job_file: str, work_dir: Path | None = None, **headers: str) -> str:
        """Hand in a job; its id."""
        upload = None
        if work_dir is not None:
            archive = io.BytesIO()
            packed = pack(work_dir, archive)
            upload = {"sha256": packed.sha256, "size_bytes": packed.size_bytes}
            place = self.send("POST", "/uploads", json=upload).json()
            if not place["exists"]:
                body, headers_of_put = archive.getvalue(), place["headers"]
                httpx.put(place["url"], content=body, headers=headers_of_put, timeout=30).raise_for_status()
        answer = self.send("POST", "/jobs", json={"job_file": job_file, "upload": upload}, headers=headers)
        assert answer.status_code in {200, 201}, answer.text
        return str(answer.json()["job"]["job_id"])

    def job(self, job_id: str) -> Json:
        """The job now."""
        return self.get(f"/jobs/{job_id}")

    def wait(self, job_id: str, *states: str, seconds: float = DEADLINE_SECONDS) -> Json:
        """The job, once it is in one of the states."""

        def look() -> Json | None:
            job = self.job(job_id)
            assert job["state"] in states or not job["state"].endswith(("DONE", "CANCELLED")), job["reason"]
            return job if job["state"] in states else None

        found: Json = eventually(f"{job_id} is {' or '.join(states)}", look, seconds)
        return found

    def log(self, job_id: str) -> str:
        """All that the job has printed, attempt after attempt."""
        text, cursor = "", ""
        while True:
            answer = self.get(f"/jobs/{job_id}/logs", cursor=cursor, follow="true")
            text += "".join(chunk["text"] for chunk in answer["chunks"])
            cursor = answer["cursor"]
            if not answer["more"]:
                return text

    def machine_of(self, job_id: str) -> str:
        """The cloud's id of the machine that owns the job, once it has one."""

        def look() -> str:
            return str((self.job(job_id)["machine"] or {}).get("allocated_id") or "")

        found: str = eventually(f"{job_id} has a machine", look)
        return found

    def interrupt(self, allocated_id: str, notice_seconds: float | None = None) -> None:
        """Have the market take a machine back."""
        order: Json = {"allocated_id": allocated_id}
        if notice_seconds is not None:
            order["notice_seconds"] = notice_seconds
        httpx.post(f"{self.stack.cloud_url}/_market/interrupt", json=order, timeout=10).raise_for_status()

    def poll(self) -> None:
        """Have the broker poll now."""
        poll(self.stack)

    def assert_machines_gone(self, job_id: str, polls: int = 2) -> None:
        """After at most so many polls no machine of the job is left: by the records, and by the process table."""
        for _ in range(polls):
            poll(self.stack)
            if self.job(job_id)["settled"]:
                break
            eventually("the cloud ended the machines", lambda: self._machines_ended(job_id), 15)
        job = self.job(job_id)
        assert job["settled"], job["instances"]
        for machine in job["instances"]:
            assert machine["state"] == "terminated"
            assert not machine["allocated_id"] or processes_of(machine["allocated_id"]) == []

    def _machines_ended(self, job_id: str) -> bool:
        machines = httpx.get(f"{self.stack.cloud_url}/_market/machines", timeout=10).json()
        listed = machines["machines"] if isinstance(machines, dict) else machines
        ours = {machine["allocated_id"] for machine in self.job(job_id)["instances"]}
        return all(m["state"] == "terminated" for m in listed if m["allocated_id"] in ours)
