"""Azure's scheduled events, as a machine reads and answers them, against the local cloud's metadata service."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from local.azure_metadata import MetadataService
from local.market import Market
from local.market_model import LaunchRequest, Machine, MachineState, PoolKey, Purchase, Shape, Timings
from spotferry.agent import watch
from spotferry.agent.azure_metadata import ScheduledEvents, deadline_of, go_ahead
from spotferry.agent.watch import AzureWatcher, Notice, Watch, watcher_of
from tests.unit.agent.clocks import ManualClock

START = datetime(2030, 1, 1, tzinfo=UTC)


class Azure:
    """One machine of the market on a clock of its own, and its metadata service."""

    def __init__(self) -> None:
        self.now = START
        self.market = Market(lambda: self.now, timings=Timings())
        pool = PoolKey("azure", "eastus", "1", "Standard_D2s_v5", Purchase.SPOT)
        request = LaunchRequest(
            pool, Shape(2, 8192, 0, "azure"), "f", allocated_id="i-1", details={"group": "g", "image_id": "i"}
        )
        self.machine: Machine = self.market.launch(request)
        self.pass_time(5)
        self.service = MetadataService(self.machine)
        self.environ = self.service.environment

    def state(self) -> MachineState:
        """How the machine is."""
        return self.machine.state

    def pass_time(self, seconds: float) -> None:
        """Let the market's time pass."""
        self.now += timedelta(seconds=seconds)
        self.market.advance()


@pytest.fixture
def azure() -> Iterator[Azure]:
    """A running machine."""
    made = Azure()
    yield made
    made.service.close()


def test_a_take_back_is_read_with_its_deadline(azure: Azure) -> None:
    """Nothing is scheduled at first; then the event's time, in RFC 3339."""
    watcher = AzureWatcher(azure.environ, ManualClock())
    assert watcher() == []
    azure.market.interrupt("i-1")
    assert watcher() == [Notice("take_back", "Preempt", "2030-01-01T00:00:35+00:00")]
    told: list[Notice] = []
    watching = Watch(watcher, told.append, ManualClock())
    watching.look()
    watching.look()
    assert len(told) == 1


def test_a_machine_that_is_ready_goes_at_once(azure: Azure) -> None:
    """The word that it may happen now ends the machine before its time."""
    azure.market.interrupt("i-1")
    assert azure.state() is MachineState.RUNNING
    assert go_ahead(azure.environ)
    assert azure.state() is MachineState.SHUTTING_DOWN
    assert azure.machine.taken_back


def test_without_a_notice_there_is_nothing_to_answer(azure: Azure) -> None:
    """A machine that ends for another reason is not taken back."""
    assert not go_ahead(azure.environ)
    assert azure.state() is MachineState.RUNNING


def test_a_notice_that_was_false_is_taken_back_and_costs_nothing(azure: Azure) -> None:
    """Being ready for it ends the notice, not the machine."""
    azure.market.interrupt("i-1", false_notice=True)
    assert go_ahead(azure.environ)
    assert azure.state() is MachineState.RUNNING
    assert ScheduledEvents(azure.environ).events() == []


def test_a_service_that_is_away_keeps_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the last word nor its silence raises anything."""
    environ = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:1"}
    assert not go_ahead(environ)
    with pytest.raises(OSError, match="refused"):
        AzureWatcher(environ, ManualClock())()
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", environ["AZURE_POD_IDENTITY_AUTHORITY_HOST"])
    watch.say_farewell("azure")
    watch.say_farewell("aws")


def test_the_last_word_of_a_machine_of_azure(
    azure: Azure, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said to the service that the vendor's variable names, and told on the console."""
    for name, value in azure.environ.items():
        monkeypatch.setenv(name, value)
    azure.market.interrupt("i-1")
    watch.say_farewell("azure")
    assert azure.state() is MachineState.SHUTTING_DOWN
    assert "may take the machine now" in "".join(capsys.readouterr())


def test_azure_is_watched() -> None:
    """By its own watcher."""
    assert isinstance(watcher_of("azure", ManualClock()), AzureWatcher)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Preempt", "take_back"),
        ("Terminate", "take_back"),
        ("Reboot", "maintenance"),
        ("Redeploy", "maintenance"),
        ("Freeze", None),
        ("NeverSeenBefore", None),
    ],
)
def test_kinds_of_events(kind: str, expected: str | None) -> None:
    """What ends the machine, what only moves it, and what it does not notice."""
    with answering(f'{{"DocumentIncarnation": 1, "Events": [{{"EventType": "{kind}", "NotBefore": ""}}]}}') as environ:
        notices = AzureWatcher(environ, ManualClock())()
    assert [(notice.kind, notice.code, notice.deadline) for notice in notices] == (
        [(expected, kind, None)] if expected else []
    )


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"Events": 1}', '{"Events": [1]}', "<html>"])
def test_other_answers_are_no_notice(body: str) -> None:
    """They are a bad answer, which is looked at again."""
    with answering(body) as environ, pytest.raises(ValueError, match=r"."):
        AzureWatcher(environ, ManualClock())()


def test_times_of_events() -> None:
    """As mail writes them; what is told otherwise is a bad answer; none is none."""
    assert deadline_of({"NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT"}) == "2016-09-19T18:29:47+00:00"
    assert deadline_of({}) is None
    with pytest.raises(ValueError, match=r"."):
        deadline_of({"NotBefore": "soon"})


class answering:  # noqa: N801 - a context manager reads as a verb
    """A service with one answer to everything; the environment that leads to it."""

    def __init__(self, body: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> dict[str, str]:
        self._thread.start()
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://127.0.0.1:{self._server.server_address[1]}"}

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
