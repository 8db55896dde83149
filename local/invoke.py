"""Runs one built function with one event of events/: `python -m local.invoke FUNCTION CASE --sam PATH`.

By `sam local invoke` where a container engine answers; else by the runtime interface emulator that the SAM CLI ships,
in a bare interpreter that sees the function, the built layer and Lambda's runtime client, and nothing else: what the
layer lacks is missing here too. The function works on the local cloud that is up, or on one of this call's own.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from local.deploy import client
from local.packaging import ROOT
from local.services import free_port
from local.stack import DEFAULT_STATE_DIR, Stack, read_stack, running

BUILD = ROOT / ".aws-sam" / "build"
RUNTIME_CLIENT = ("awslambdaric", "runtime_client", "simplejson", "snapshot_restore_py")
ENGINE_SECONDS = 5
START_SECONDS = 15
POLL_SECONDS = 0.1


class InvokeError(Exception):
    """The function could not be run; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A function of the template and the event it is to get."""

    logical_id: str
    event: Path


def invocation(function: str, case: str) -> Invocation:
    """The invocation of these names.

    Raises:
        InvokeError: there is no such event for a function that runs here; the text lists those there are.
    """
    event = ROOT / "events" / function / f"{case}.json"
    here = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
    if function not in here or not event.is_file():
        events = [path for path in (ROOT / "events").glob("*/*.json") if path.parent.name in here]
        cases = sorted(f"FN={path.parent.name} CASE={path.stem}" for path in events)
        raise InvokeError(f"There is no event {function}/{case}. There are:\n  " + "\n  ".join(cases))
    logical_id = "".join(word.capitalize() for word in function.split("_")) + "Function"
    return Invocation(logical_id, event)


def has_container_engine() -> bool:
    """Whether Docker or Finch is installed and answers."""
    for engine in filter(None, (shutil.which("docker"), shutil.which("finch"))):
        with contextlib.suppress(subprocess.TimeoutExpired):
            info = subprocess.run(  # noqa: S603 - the engine on PATH
                [engine, "info"], capture_output=True, timeout=ENGINE_SECONDS, check=False
            )
            if info.returncode == 0:
                return True
    return False


def function_environment(stack: Stack, logical_id: str) -> dict[str, str]:
    """The environment of the deployed function, pointed at the local cloud."""
    name = _deployed_name(stack, logical_id)
    configuration = client("lambda", stack.emulator_url).get_function_configuration(FunctionName=name)
    return {**configuration["Environment"]["Variables"], **stack.functions_environment}


def _deployed_name(stack: Stack, logical_id: str) -> str:
    cloudformation = client("cloudformation", stack.emulator_url)
    resource = cloudformation.describe_stack_resource(StackName="spotferry", LogicalResourceId=logical_id)
    name: str = resource["StackResourceDetail"]["PhysicalResourceId"]
    return name


def invoke_in_container(sam: Path, what: Invocation, env: Mapping[str, str]) -> int:
    """Run it by `sam local invoke`; its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        variables = Path(folder) / "env.json"
        variables.write_text(json.dumps({what.logical_id: dict(env)}), encoding="utf-8")
        command = [str(sam), "local", "invoke", what.logical_id, "--event", str(what.event)]
        # The local cloud listens on the loopback interface, which is the container's own only on the host's network.
        command += ["--env-vars", str(variables), "--docker-network", "host"]
        return subprocess.run(command, check=False, cwd=ROOT).returncode  # noqa: S603 - a command of our own


def invoke_by_emulator(sam: Path, what: Invocation, env: Mapping[str, str]) -> int:
    """Run it by the runtime interface emulator, print its result; 1 if the function failed, else 0."""
    event = what.event.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        command = _emulator_command(sam, what, free_port(), free_port())
        address = command[2]
        whole_env = {**_runtime_environment(what, Path(folder)), **env}
        with _running(command, whole_env, BUILD / what.logical_id):
            result = _post(f"http://{address}/2015-03-31/functions/function/invocations", event)
    print(json.dumps(result, indent=2))  # noqa: T201 - the result is what was asked for
    return int(isinstance(result, dict) and "errorType" in result)


def _emulator_command(sam: Path, what: Invocation, port: int, api_port: int) -> Sequence[str]:
    machine = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
    environment = sam.absolute().parent.parent
    found = sorted(environment.glob(f"lib/python*/site-packages/samcli/local/rapid/aws-lambda-rie-{machine}"))
    if sys.platform != "linux" or not found:
        raise InvokeError("The runtime interface emulator is for Linux, with .venv-sam: start Docker or Finch instead.")
    if not (BUILD / what.logical_id).is_dir():
        raise InvokeError(f"{what.logical_id} is not built. Build it: make build")
    # -S, -s: no installed package is seen. The base interpreter's own -I would ignore PYTHONPATH as well.
    interpreter = [os.path.realpath(sys.executable), "-S", "-s", "-m", "awslambdaric", "app.handler"]
    addresses = ["--runtime-interface-emulator-address", f"127.0.0.1:{port}"]
    addresses += ["--runtime-api-address", f"127.0.0.1:{api_port}"]
    return [str(found[0]), *addresses, *interpreter]


def _runtime_environment(what: Invocation, folder: Path) -> dict[str, str]:
    """Lambda's own variables, and the paths of function, layer and runtime client."""
    for name in RUNTIME_CLIENT:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            source = origin.parent if origin.name == "__init__.py" else origin
            (folder / source.name).symlink_to(source)
    task_root = BUILD / what.logical_id
    paths = (task_root, BUILD / "SharedLayer" / "python", folder)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "LAMBDA_TASK_ROOT": str(task_root),
        "AWS_LAMBDA_FUNCTION_NAME": what.logical_id,
        "AWS_LAMBDA_FUNCTION_TIMEOUT": "60",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_REGION": "us-east-1",
    }


@contextlib.contextmanager
def _running(command: Sequence[str], env: Mapping[str, str], folder: Path) -> Iterator[None]:
    with subprocess.Popen(  # noqa: S603 - a command of our own
        command, env=dict(env), cwd=folder, stdout=sys.stderr, start_new_session=True
    ) as process:
        try:
            yield
        finally:
            _end(process.pid)


def _end(number: int) -> None:
    """End the emulator and the runtime it started, which would complain if it saw the emulator go first."""
    emulator = psutil.Process(number)
    runtimes = emulator.children(recursive=True)
    for act in (psutil.Process.suspend, psutil.Process.kill):
        for process in (*runtimes, emulator):
            with contextlib.suppress(psutil.NoSuchProcess):
                act(process)


def _post(url: str, event: bytes) -> object:
    request = urllib.request.Request(url, data=event, method="POST")  # noqa: S310 - our own http address
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as response:  # noqa: S310
                result: object = json.loads(response.read() or b"null")
                return result
        except ConnectionResetError:
            raise InvokeError("The runtime ended before it answered; its output is above.") from None
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise InvokeError(f"The runtime interface emulator did not start at {url}.") from None
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def _cloud() -> Iterator[Stack]:
    """The local cloud that is up, or one for the time of the call."""
    stack = read_stack(ROOT / DEFAULT_STATE_DIR)
    if stack is not None and stack.is_alive():
        yield stack
        return
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as own:
        yield own


def main() -> int:
    """Run what the command line names; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("function", help="a folder of events/")
    parser.add_argument("case", help="a file of it, without .json")
    parser.add_argument("--sam", type=Path, default=ROOT / ".venv-sam" / "bin" / "sam")
    options = parser.parse_args()
    try:
        what = invocation(options.function, options.case)
        invoke = invoke_in_container if has_container_engine() else invoke_by_emulator
        with _cloud() as stack:
            return invoke(options.sam, what, function_environment(stack, what.logical_id))
    except InvokeError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
