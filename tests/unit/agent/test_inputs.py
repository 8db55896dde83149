"""Inputs arrive whole, in their place, or fail once with the reason."""

import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from spotferry.agent.cloud_credentials import CloudCredentials
from spotferry.agent.errors import AddressExpired, StepFailed
from spotferry.agent.inputs import CarefulRedirect, Inputs
from spotferry.agent.plan import Input
from spotferry.agent.settings import Places
from spotferry.agent.transfer import TRIES
from spotferry.agent.world import World
from tests.unit.agent.clocks import ManualClock

CONTENT = bytes(range(256)) * 8192


@dataclass
class Store:
    """Objects, and how it serves them.

    Attributes:
        objects: by path.
        cut: the lengths after which the next answers break off.
        etag: of all objects; "" for none.
        asked: path and Range of each request.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    etag: str = '"v1"'
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def given(self, path: str, content: bytes | None = CONTENT, *, access: str = "", size_gb: float = 0.001) -> Input:
        """An input of this store; None for one that is not there."""
        if content is not None:
            self.objects[f"/{path}"] = content
        return Input(path, f"s3://data/{path}", f"{self.url}/{path}", access, "us-east-1", size_gb)


class Server(ThreadingHTTPServer):
    """A server whose clients may give up."""

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that its client closed is no fault of the server's."""


@pytest.fixture
def store() -> Iterator[Store]:
    """A store that serves over HTTP."""
    kept = Store()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            begin = self.headers.get("Range", "")
            kept.asked.append((self.path, begin))
            content = kept.objects.get(self.path)
            if "Authorization" in self.headers:
                self.send_error(403)
                return
            if content is None:
                self.send_error(404)
                return
            start = int(begin[6:-1]) if begin and self.headers.get("If-Range") == kept.etag else 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            if kept.etag:
                self.send_header("ETag", kept.etag)
            self.end_headers()
            end = kept.cut.pop(0) if kept.cut else len(content)
            self.wfile.write(content[start : start + end])
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
            """Say nothing."""

    with Server(("127.0.0.1", 0), Handler) as server:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield kept
        server.shutdown()


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world of the current user."""
    return World(Places(tmp_path, privileged=False))


@pytest.fixture
def inputs(world: World) -> Inputs:
    """What is tested."""
    clock = ManualClock()
    return Inputs(world, CloudCredentials("elsewhere", {}, clock), clock)


def nothing() -> None:
    """No order."""


def test_inputs_are_in_their_places(store: Store, inputs: Inputs, world: World) -> None:
    """Each is below the directory of inputs, whole; nothing else is left there."""
    inputs.bring([store.given("a.bin"), store.given("deep/er/b.bin", b"")], nothing, fresh=False)
    assert (world.inputs_dir / "a.bin").read_bytes() == CONTENT
    assert (world.inputs_dir / "deep/er/b.bin").read_bytes() == b""
    assert sorted(path.name for path in world.inputs_dir.rglob("*") if path.is_file()) == ["a.bin", "b.bin"]


def test_what_is_there_is_not_fetched_again(store: Store, inputs: Inputs) -> None:
    """A retry of setup on the same machine costs no second transfer."""
    given = store.given("a.bin")
    inputs.bring([given], nothing, fresh=False)
    inputs.bring([given], nothing, fresh=False)
    assert len(store.asked) == 1


def test_broken_transfer_goes_on_where_it_stopped(store: Store, inputs: Inputs, world: World) -> None:
    """As long as each try brings something there is no limit to the tries, and no byte travels twice."""
    step = 50_000
    store.cut = [step] * (3 * TRIES)
    inputs.bring([store.given("a.bin")], nothing, fresh=False)
    assert (world.inputs_dir / "a.bin").read_bytes() == CONTENT
    assert [begin for _, begin in store.asked][:3] == ["", f"bytes={step}-", f"bytes={2 * step}-"]
    assert len(store.asked) == 3 * TRIES + 1


def test_object_that_changed_meanwhile_is_fetched_from_its_start(store: Store, inputs: Inputs, world: World) -> None:
    """Two versions are never put together; nor are parts of an object that has no version to go by."""
    given = store.given("a.bin")
    store.cut = [70_000]

    def change() -> None:
        if len(store.asked) == 1:
            store.etag, store.objects["/a.bin"] = '"v2"', CONTENT[::-1]

    inputs.bring([given], change, fresh=False)
    assert (world.inputs_dir / "a.bin").read_bytes() == CONTENT[::-1]
    store.etag, store.cut, store.asked = "", [70_000], []
    inputs.bring([store.given("b.bin")], nothing, fresh=False)
    assert (world.inputs_dir / "b.bin").read_bytes() == CONTENT
    assert [begin for _, begin in store.asked] == ["", ""]


def test_wrong_address_fails_once_and_at_once(store: Store, inputs: Inputs) -> None:
    """One request, and the report names the input as its author wrote it."""
    with pytest.raises(StepFailed, match=r"s3://data/none cannot be had: HTTP 404") as failed:
        inputs.bring([store.given("none", None)], nothing, fresh=False)
    assert failed.value.event == "startup_failed"
    assert len(store.asked) == 1


def test_brokers_address_that_ran_out_is_asked_for_again(store: Store, inputs: Inputs) -> None:
    """The first refusal asks for a new address; a refused new one means that there is no such object."""
    given = store.given("none", None, access="broker")
    with pytest.raises(AddressExpired):
        inputs.bring([given], nothing, fresh=False)
    with pytest.raises(StepFailed, match="404"):
        inputs.bring([given], nothing, fresh=True)


def test_nobody_there_fails_after_the_tries(store: Store, inputs: Inputs) -> None:
    """A store that never answers is given up, with the reason."""
    gone = Input("a", "https://e.org/a", "http://127.0.0.1:1/a", "", "", 1)
    with pytest.raises(StepFailed, match=r"https://e.org/a cannot be had"):
        inputs.bring([gone], nothing, fresh=False)
    assert store.asked == []


class Strangers(CloudCredentials):
    """Credentials that the store does not let in."""

    def headers(self, cloud: str, url: str, region: str) -> dict[str, str]:  # noqa: ARG002 (the same for all)
        """Some."""
        return {"Authorization": "Bearer stranger"}


def test_public_object_is_had_also_by_a_machine_whose_role_may_not(store: Store, world: World) -> None:
    """Credentials that are refused are left away; what nobody may read fails after that."""
    clock = ManualClock()
    inputs = Inputs(world, Strangers("aws", {}, clock), clock)
    inputs.bring([store.given("a.bin", access="aws")], nothing, fresh=False)
    assert (world.inputs_dir / "a.bin").read_bytes() == CONTENT
    with pytest.raises(StepFailed, match="404"):
        inputs.bring([store.given("none", None, access="aws")], nothing, fresh=False)
    assert len(store.asked) == 4


def test_input_much_larger_than_said_is_refused_before_it_fills_the_disk(store: Store, inputs: Inputs) -> None:
    """Machine, disk and transfer were chosen for the size that the job file says."""
    with pytest.raises(StepFailed, match=r"it has 20000000 bytes, the job file says 0.001 GB"):
        inputs.bring([store.given("a.bin", bytes(20_000_000))], nothing, fresh=False)


def test_link_planted_by_the_task_is_not_followed(store: Store, inputs: Inputs, world: World, tmp_path: Path) -> None:
    """What the task leaves in the directory of inputs leads the agent nowhere else."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    world.inputs_dir.mkdir()
    (world.inputs_dir / "deep").symlink_to(elsewhere)
    with pytest.raises(StepFailed, match="is no directory"):
        inputs.bring([store.given("deep/a.bin")], nothing, fresh=False)
    assert list(elsewhere.iterdir()) == []


def test_order_ends_a_transfer(store: Store, inputs: Inputs) -> None:
    """Whatever the check raises comes through at the next block."""

    def stop() -> None:
        if store.asked:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inputs.bring([store.given("a.bin")], stop, fresh=False)


@pytest.mark.parametrize(
    ("headers", "old", "new", "followed"),
    [
        ({}, "https://a/x", "https://b/x", True),
        ({}, "http://a/x", "http://b/x", True),
        ({}, "https://a/x", "http://b/x", False),
        ({"Authorization": "Bearer t"}, "https://a/x", "https://b/x", False),
    ],
)
def test_redirects_lose_neither_secrecy_nor_secrets(
    headers: dict[str, str],
    old: str,
    new: str,
    followed: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    """No redirect leaves https, and none carries credentials to another host."""
    request = urllib.request.Request(old, headers=headers)
    answer = CarefulRedirect().redirect_request(request, None, 302, "", {}, new)  # type: ignore[arg-type]  # unused
    assert (answer is not None) == followed
