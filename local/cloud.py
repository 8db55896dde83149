"""The local cloud's machines and market as one server: `python -m local.cloud --port 0 --state-dir DIR`.

Serves EC2 and AWS's price list at /, Compute Engine and the price sources of Google Cloud and Azure at /_gcp/ and
/_azure/, Paperspace's API at /_paperspace/v1/, and the levers at /_market/. Prints one JSON line {"port": N} when it
serves and writes the same to DIR/cloud.json. SIGTERM or SIGINT ends every machine, then the server, with status 0.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from local import arm, azure_pricing, gce, gcp_pricing, paperspace
from local.aws_pricing import AwsPricingFace, is_meant
from local.azure_events import EventGrid
from local.ec2 import Ec2Face
from local.ec2_moto import Moto
from local.gcp_audit import AuditLog
from local.levers import PREFIX, Levers
from local.machine_image import MachineImage
from local.machine_processes import FIRST_UID
from local.machine_users import MachineUsers
from local.market import Market
from local.market_faults import Faults
from local.market_model import Timings
from local.metal import Metal
from local.notices import Notices
from local.places import PlacesFace

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_BUS_HELP = "where PutEvents goes; without it nobody is told of anything"


class _Handler(WSGIRequestHandler):
    """Logs errors only, and closes the connection of an answer that was ordered to be lost."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def connection_dropped(
        self,
        error: BaseException,  # noqa: ARG002 - the base class calls it so
        environ: WSGIEnvironment | None = None,  # noqa: ARG002 - the base class calls it so
    ) -> None:
        """Close it, or the client would wait for the answer until its patience ends."""
        self.close_connection = True


class _Front:
    """Sends a request to the first face that it is meant for; to EC2 when it is meant for no other."""

    def __init__(
        self, faces: Sequence[tuple[Callable[[WSGIEnvironment], bool], WSGIApplication]], ec2: Ec2Face
    ) -> None:
        self._faces = faces
        self._ec2 = ec2

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        app = next((face for is_for, face in self._faces if is_for(environ)), self._ec2)
        return app(environ, start_response)


def _is_for_levers(environ: WSGIEnvironment) -> bool:
    return str(environ.get("PATH_INFO", "")).startswith(PREFIX)


def main(arguments: list[str] | None = None) -> None:
    """Serve until told to end."""
    options = _options(arguments)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: ended.set())
    options.state_dir.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        server = _build(options, running)
        line = json.dumps({"port": server.port})
        (options.state_dir / "cloud.json").write_text(f"{line}\n")
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        ended.wait()


def _build(options: argparse.Namespace, running: ExitStack) -> BaseWSGIServer:
    """Start every part; leaving `running` stops them in the opposite order."""
    timings = replace(Timings().at_speed(options.speed_up), boot=timedelta(seconds=options.boot_seconds))
    market = Market(_now, seed=options.seed, timings=timings, external_power=not options.no_metal)
    faults, moto = Faults(), Moto()
    _tell_of_events(options, market, running)
    if not options.no_metal:
        _give_bodies(options, market, running)
    _start_ticking(market, running)
    places = PlacesFace(market, faults)
    # A cloud's other faces are added here, each with what tells its requests from those for EC2.
    faces = (
        (_is_for_levers, Levers(market, faults, moto)),
        (is_meant, AwsPricingFace(market, faults)),
        (gce.is_meant, gce.GceFace(market, faults)),
        (places.is_meant, places),
        (gcp_pricing.is_meant, gcp_pricing.GcpPricingFace(market, faults)),
        (arm.is_meant, _azure(market, faults)),
        (azure_pricing.is_meant, azure_pricing.AzurePricingFace(market, faults)),
        (paperspace.is_meant, paperspace.PaperspaceFace(market, faults)),
    )
    front = _Front(faces, Ec2Face(market, faults, moto))
    server = make_server("127.0.0.1", options.port, front, threaded=True, request_handler=_Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="http", daemon=True)
    thread.start()
    running.callback(thread.join)
    running.callback(server.shutdown)
    return server


def _give_bodies(options: argparse.Namespace, market: Market, running: ExitStack) -> None:
    """Machines that run are process trees."""
    image = MachineImage(options.alike, tuple(options.program))
    image.check()
    metal = Metal(market, options.state_dir, MachineUsers(options.first_uid, root=image.alike), image)
    running.callback(metal.close)
    market.subscribe(metal.hear)


def _tell_of_events(options: argparse.Namespace, market: Market, running: ExitStack) -> None:
    """Each cloud's own way out: EC2's events go to the bus, Google's audit log to its relay, Azure's to Event Grid."""
    if options.bus_endpoint:
        notices = Notices(options.bus_endpoint)
        running.callback(notices.close)
        market.subscribe(notices.hear)
    if options.gcp_relay:
        audit_log = AuditLog(market, options.gcp_relay)
        running.callback(audit_log.close)
        market.subscribe(audit_log.hear)
    if options.azure_events:
        grid = EventGrid(options.azure_events, market)
        running.callback(grid.close)
        market.subscribe(grid.hear)


def _azure(market: Market, faults: Faults) -> arm.ArmFace:
    """Azure's resource manager."""
    face = arm.ArmFace(market, faults)
    market.subscribe(face.hear)
    return face


def _start_ticking(market: Market, running: ExitStack) -> None:
    stop = threading.Event()
    ticker = threading.Thread(target=market.run, args=(stop,), name="market", daemon=True)
    ticker.start()
    running.callback(ticker.join)
    running.callback(market.wake)
    running.callback(stop.set)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.cloud", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed-up", type=_positive, default=10.0, help="divides the cloud's own delays")
    parser.add_argument("--boot-seconds", type=_positive, default=0.5)
    parser.add_argument("--bus-endpoint", default="", help=_BUS_HELP)
    parser.add_argument("--gcp-relay", default="", help="where Google's audit log of preemptions is posted")
    parser.add_argument("--azure-events", default="", help="where Event Grid posts what happens to Azure's machines")
    parser.add_argument("--first-uid", type=int, default=FIRST_UID, help="machines run as users from this one on")
    parser.add_argument("--alike", action="store_true", help="each machine is root and finds itself at the same place")
    parser.add_argument("--program", type=Path, action="append", default=[], help="a command that every machine has")
    parser.add_argument("--no-metal", action="store_true", help="sell machines that have no processes")
    return parser.parse_args(arguments)


def _positive(text: str) -> float:
    number = float(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return number


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
    # All is closed; taking moto's objects apart one by one would only cost another second.
    os._exit(0)
