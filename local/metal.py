"""Machines as real process trees: each runs its user data in a home of its own and is taken away when it ends.

A machine's first process holds the machine's mains, a pipe to this process: when this process is gone, however it went,
every machine goes too.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from local.machine_home import MachineHome, build_home, clear_land, prepare_land
from local.machine_image import MachineImage
from local.machine_processes import MARKER, all_machine_processes, end_processes_of, processes_of
from local.machine_users import MachineUser, MachineUsers
from local.market import Market
from local.market_model import INTERNAL_ERROR, EventKind, Machine, MachineState, MarketEvent
from local.metadata import SERVICES, MetadataService
from spotferry.agent.removal import remove

__all__ = ["Metal", "all_machine_processes", "processes_of"]

_KILL_SECONDS = 5.0
_WORKERS = 8


@dataclass(slots=True)
class _Body:
    """What a running machine is made of."""

    home: MachineHome
    user: MachineUser
    metadata: MetadataService
    process: subprocess.Popen[bytes]


class Metal:
    """Gives the market's machines their bodies."""

    def __init__(
        self,
        market: Market,
        state_dir: Path,
        users: MachineUsers | None = None,
        image: MachineImage | None = None,
    ) -> None:
        self._market = market
        self._state_dir = state_dir
        self._users = users or MachineUsers()
        self._image = image or MachineImage()
        self._land = prepare_land(state_dir, separate_users=self._users.separate)
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._bodies: dict[str, _Body] = {}
        self._ended: set[str] = set()
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="metal")
        self._closing = False

    def hear(self, event: MarketEvent) -> None:
        """Boot what runs and take away what ends, on threads of this object; for `Market.subscribe`."""
        if event.kind is not EventKind.STATE or self._closing:
            return
        if event.value == MachineState.RUNNING:
            self._workers.submit(self._guarded, self._boot, event.allocated_id)
        elif event.value in {MachineState.SHUTTING_DOWN, MachineState.STOPPING}:
            self._workers.submit(self._guarded, self._take_away, event.allocated_id)

    def close(self) -> None:
        """Take every machine away; nothing of them runs when it returns."""
        self._closing = True
        self._workers.shutdown(wait=True, cancel_futures=True)
        with ThreadPoolExecutor(_WORKERS) as last:
            list(last.map(self._take_away_at_last, list(self._bodies)))
        clear_land(self._state_dir)

    def console(self, allocated_id: str) -> Path:
        """The file with all the machine has printed."""
        return self._state_dir / "consoles" / f"{allocated_id}.log"

    def _guarded(self, action: object, allocated_id: str) -> None:
        assert callable(action), "only methods of this object are given"
        try:
            action(allocated_id)
        except Exception as error:  # noqa: BLE001 - a broken machine must not take the cloud with it
            sys.stderr.write(f"local cloud: machine {allocated_id}: {type(error).__name__}: {error}\n")
            self._market.kill(allocated_id, INTERNAL_ERROR)

    def _boot(self, allocated_id: str) -> None:
        machine = self._market.get(allocated_id)
        with self._machine_lock(allocated_id):
            if allocated_id in self._ended or self._closing:
                return
            body = self._make_body(machine)
            self._bodies[allocated_id] = body
        name = f"mains-{allocated_id}"
        threading.Thread(target=self._watch, args=(allocated_id, body.process), name=name, daemon=True).start()

    def _make_body(self, machine: Machine) -> _Body:
        with contextlib.ExitStack() as undo:
            user = self._users.take()
            undo.callback(self._users.give_back, user)
            python = self._users.python or sys.executable
            home = build_home(self._land, machine.allocated_id, machine.request.user_data, python, user.uid)
            metadata = SERVICES[machine.pool.provider](machine)
            undo.callback(metadata.close)
            self._image.install(home)
            seen = self._image.where(home)
            environment = seen.environment(machine.allocated_id, metadata.environment, MARKER)
            environment |= self._image.environment(home, user.uid)
            own_user = [] if user.uid is None else ["--own-user"]
            first = [python, "-I", str(seen.init), str(seen.user_data), str(seen.run), *own_user]
            console_path = self.console(machine.allocated_id)
            console_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with console_path.open("ab") as console:
                process = _power_on(self._image.command(home, first), home.home, user.uid, environment, console)
            undo.pop_all()
            return _Body(home, user, metadata, process)

    def _watch(self, allocated_id: str, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        if allocated_id not in self._ended and not self._closing:
            self._market.os_shutdown(allocated_id)

    def _take_away(self, allocated_id: str) -> None:
        body = self._end(allocated_id)
        self._market.powered_off(allocated_id)
        if body is not None:
            self._clear(body)

    def _take_away_at_last(self, allocated_id: str) -> None:
        body = self._end(allocated_id)
        if body is not None:
            self._clear(body)

    def _end(self, allocated_id: str) -> _Body | None:
        """Switch the machine off for good; answer its body, in which nothing lives any more."""
        with self._machine_lock(allocated_id):
            self._ended.add(allocated_id)
            body = self._bodies.pop(allocated_id, None)
            if body is None:
                return None
            left = end_processes_of(allocated_id, uid=body.user.uid, deadline_seconds=_KILL_SECONDS)
            while left:
                sys.stderr.write(f"local cloud: machine {allocated_id} still has processes {left}\n")
                left = end_processes_of(allocated_id, uid=body.user.uid, deadline_seconds=_KILL_SECONDS)
            body.process.wait()
            return body

    def _clear(self, body: _Body) -> None:
        """Take back what the machine had; its disk goes with it, as the next one may get its user."""
        assert body.process.stdin is not None, "the mains are a pipe"
        body.process.stdin.close()
        body.metadata.close()
        with contextlib.suppress(OSError):  # what will not go is in nobody's way
            remove(body.home.folder)
        self._users.give_back(body.user)

    def _machine_lock(self, allocated_id: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(allocated_id, threading.Lock())


def _power_on(
    command: Sequence[str], folder: Path, uid: int | None, environment: dict[str, str], console: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the machine's own first process
        command,
        stdin=subprocess.PIPE,
        stdout=console,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
        umask=0o022 if os.name == "posix" else -1,
        start_new_session=True,
    )
