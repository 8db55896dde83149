"""Runs the AWS emulator in this process: `python -m local.emulator --port N --state-dir DIR`.

The emulator is MiniStack with a few changes, all of private names of the one release that the locks pin: anybody may
put events of the source `aws.*` on the bus (the local cloud plays EC2); such events of another region reach the home
region's rules too, as they do in AWS by the forwarding rule of each launch region; Parameter Store serves the image
vendors' public parameters for the images that the local EC2 knows; policies see which parameters a call reads, and a
batch of messages as AWS sees it. Prints one JSON line {"port": N} when it serves; SIGTERM ends it.
"""

import argparse
import asyncio
import ctypes
import functools
import importlib
import importlib.metadata
import json
import os
import posixpath
import re
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

from local.aws_facts import public_image_id

TESTED_RELEASE = "1.5.33"
PUBLIC_IMAGES = re.compile(r"/aws/service/(canonical|deeplearning|ami-amazon-linux-latest|debian)/")
HOME_REGION = "us-east-1"
PR_SET_PDEATHSIG = 1

# A response of the emulator or a stored parameter of its: the emulator itself has no types.
Answer = dict[str, Any]


class EmulatorChangedError(RuntimeError):
    """The installed emulator lacks a private name that is changed here."""


def environment(port: int, state_dir: Path, *, auth: bool) -> dict[str, str]:
    """What the emulator reads from the environment: loopback only, quiet, no file outside the state folder."""
    return {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": HOME_REGION,
        "AWS_DEFAULT_REGION": HOME_REGION,
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "AUTH": "true" if auth else "false",
        "LAMBDA_EXECUTOR": "local",
        "LOG_LEVEL": os.environ.get("LOG_LEVEL", "INFO"),
        "STATE_DIR": str(state_dir / "emulator"),
        "S3_DATA_DIR": str(state_dir / "emulator" / "s3"),
        "TMPDIR": str(state_dir / "tmp"),
        "HOSTNAME": "127.0.0.1",
    }


def _private(module: ModuleType, name: str) -> Any:  # whatever the untyped emulator holds there
    try:
        return getattr(module, name)
    except AttributeError:
        release = importlib.metadata.version("ministack")
        message = (
            f"MiniStack {release} has no {module.__name__}.{name}; local/emulator.py was written for {TESTED_RELEASE}. "
            "Install the locked release: make setup"
        )
        raise EmulatorChangedError(message) from None


def allow_aws_events(eventbridge: ModuleType) -> None:
    """Let PutEvents take events whose source is `aws.*`, as the services themselves put them."""
    put_events: Callable[..., Answer] = _private(eventbridge, "_put_events")
    eventbridge._put_events = functools.partial(put_events, allow_aws_source=True)  # type: ignore[attr-defined]  # noqa: SLF001


def forward_to_home(eventbridge: ModuleType, responses: ModuleType, home: str) -> None:
    """Show the services' events of other regions to the home region's rules as well, with their own region on them."""
    dispatch: Callable[..., None] = _private(eventbridge, "_dispatch_event")
    region: Callable[[], str] = _private(responses, "get_region")
    set_region: Callable[[str], None] = _private(responses, "set_request_region")

    def dispatch_here_and_at_home(event: Answer, view: object = None) -> None:
        dispatch(event, view)
        here = region()
        if here == home or not str(event.get("Source")).startswith("aws."):
            return
        set_region(home)
        try:
            dispatch(event, view)
        finally:
            set_region(here)

    eventbridge._dispatch_event = dispatch_here_and_at_home  # type: ignore[attr-defined]  # noqa: SLF001


def serve_public_images(ssm: ModuleType) -> None:
    """Let Parameter Store answer for the public parameters of image vendors."""
    public_parameter: Callable[[str], Answer | None] = _private(ssm, "_public_parameter")
    region: Callable[[], str] = _private(ssm, "get_region")

    def parameter(name: str) -> Answer | None:
        if not PUBLIC_IMAGES.match(name):
            return public_parameter(name)
        return {
            "Name": name,
            "Type": "String",
            "DataType": "aws:ec2:image",
            "Value": public_image_id(region(), name),
            "Version": 1,
            "LastModifiedDate": 1728518400,
            "ARN": f"arn:aws:ssm:{region()}::parameter{name}",
        }

    ssm._public_parameter = parameter  # type: ignore[attr-defined]  # noqa: SLF001


def name_parameters(iam_actions: ModuleType) -> None:
    """Let policies see the parameters that a call reads, also by path, in batches, and public ones: their ARNs."""
    extract: Callable[..., str] = _private(iam_actions, "extract_resource_arn")

    def resource_arn(*request: Any) -> str:  # the parts of an HTTP request, as the emulator hands them round
        service, _method, _path, _headers, body, _query, region, account = request
        names = _parameter_names(body) if service == "ssm" else []
        if not names:
            return extract(*request)
        name = names[0] if len(names) == 1 else posixpath.commonpath(names) + "/*"
        return f"arn:aws:ssm:{region}:{'' if PUBLIC_IMAGES.match(name) else account}:parameter{name}"

    iam_actions.extract_resource_arn = resource_arn  # type: ignore[attr-defined]


def authorize_batches(iam_actions: ModuleType) -> None:
    """Let policies see a batch of queue messages as AWS does: by the action on one message, for there is no other."""
    extract: Callable[..., str | None] = _private(iam_actions, "extract_iam_action")

    @functools.wraps(extract)
    def action(*request: Any, **more: Any) -> str | None:  # the parts of an HTTP request
        found = extract(*request, **more)
        return found.removesuffix("Batch") if found and found.startswith("sqs:") else found

    iam_actions.extract_iam_action = action  # type: ignore[attr-defined]


def _parameter_names(body: bytes) -> list[str]:
    try:
        call = json.loads(body)
    except ValueError:
        return []
    if not isinstance(call, dict):
        return []
    names = [call.get("Name"), call.get("Path"), *(call.get("Names") or [])]
    return [name for name in names if isinstance(name, str) and name.startswith("/")]


def die_with_parent() -> None:
    """On Linux, have the kernel end this process when the one that started it is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


async def _run(app: Any, listener: socket.socket) -> None:  # an untyped ASGI application
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = "WARNING"
    await serve(app, config, shutdown_trigger=stopped.wait)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    listener.set_inheritable(False)
    return listener


def load(settings: Mapping[str, str]) -> Any:  # an untyped ASGI application
    """Import the emulator under these settings, change what has to be changed, and return its application.

    Raises:
        EmulatorChangedError: the installed release lacks what is changed here.
    """
    os.environ.update(settings)
    for name in ("STATE_DIR", "S3_DATA_DIR", "TMPDIR"):
        Path(settings[name]).mkdir(parents=True, exist_ok=True)
    eventbridge = importlib.import_module("ministack.services.eventbridge")
    allow_aws_events(eventbridge)
    forward_to_home(eventbridge, importlib.import_module("ministack.core.responses"), HOME_REGION)
    serve_public_images(importlib.import_module("ministack.services.ssm"))
    iam_actions = importlib.import_module("ministack.core.iam_actions")
    name_parameters(iam_actions)
    authorize_batches(iam_actions)
    return _private(importlib.import_module("ministack.app"), "app")


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--auth", action="store_true", help="check signatures and policies as AWS does")
    options = parser.parse_args()
    die_with_parent()
    listener = _listen(options.port)
    port = listener.getsockname()[1]
    app = load(environment(port, options.state_dir.absolute(), auth=options.auth))
    print(json.dumps({"port": port}), flush=True)  # noqa: T201 - the starter reads it
    asyncio.run(_run(app, listener))


if __name__ == "__main__":
    main()
