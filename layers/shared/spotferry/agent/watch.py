"""Looks at the cloud's metadata service for notices that the machine will be taken back."""

from __future__ import annotations

import http.client
import os
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Set

from spotferry.agent import azure_metadata
from spotferry.agent.azure_metadata import ScheduledEvents, deadline_of
from spotferry.agent.clock import Clock
from spotferry.agent.console import say
from spotferry.agent.ec2_metadata import Ec2Metadata
from spotferry.agent.errors import Data
from spotferry.agent.gce_metadata import GceMetadata

POLL_SECONDS = 2.0


@dataclass(frozen=True)
class Notice:
    """What the cloud says about the machine.

    Attributes:
        kind: `take_back`, `rebalance` or `maintenance`.
        code: the cloud's own word.
        deadline: RFC 3339; None when the cloud names none.
    """

    kind: str
    code: str
    deadline: Optional[str]

    def data(self) -> Data:
        """As the report carries it."""
        return {"kind": self.kind, "code": self.code, "deadline": self.deadline}


Watcher = Callable[[], List[Notice]]
"""What the metadata service says now; raises OSError, HTTPException or ValueError when it cannot be asked."""


class AwsWatcher:
    """EC2's notices, in its metadata service."""

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        self._metadata = Ec2Metadata(environ, clock)

    def __call__(self) -> List[Notice]:
        """The notices that stand now."""
        notices = []
        if (action := self._metadata.document("spot/instance-action")) is not None:
            notices.append(Notice("take_back", str(action.get("action", "terminate")), _text(action.get("time"))))
        if (advice := self._metadata.document("events/recommendations/rebalance")) is not None:
            notices.append(Notice("rebalance", "rebalance-recommendation", _text(advice.get("noticeTime"))))
        return notices


class GcpWatcher:
    """Compute Engine's notice, in its metadata server: a flag without a time, up to half a minute before the end."""

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        del clock  # the server itself waits
        self._metadata = GceMetadata(environ)

    def __call__(self) -> List[Notice]:
        """The notice, if it stands; an answer may take as long as the server holds it back."""
        taken = self._metadata.changed("instance/preempted").upper() == "TRUE"
        return [Notice("take_back", "preempted", None)] if taken else []


class AzureWatcher:
    """Azure's notices, in the scheduled events of its metadata service: half a minute before a take-back."""

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        del clock  # the service keeps no session
        self._service = ScheduledEvents(environ)

    def __call__(self) -> List[Notice]:
        """The notices that stand now; a pause of some seconds is none."""
        return [
            Notice(AZURE_EVENTS[kind], kind, deadline_of(event))
            for event in self._service.events()
            if (kind := str(event.get("EventType"))) in AZURE_EVENTS
        ]


AZURE_EVENTS = {
    "Preempt": "take_back",
    "Terminate": "take_back",
    "Reboot": "maintenance",
    "Redeploy": "maintenance",
}
"""Kind of an event to kind of notice; of "Freeze" nothing is lost."""

WATCHERS: Dict[str, Callable[[Mapping[str, str], Clock], Watcher]] = {
    "aws": AwsWatcher,
    "gcp": GcpWatcher,
    "azure": AzureWatcher,
}
"""How each cloud is watched, by the provider's name."""

FAREWELLS: Dict[str, Callable[[Mapping[str, str]], bool]] = {"azure": azure_metadata.go_ahead}
"""Clouds that wait for a machine's word before they take it back, by the provider's name."""


class Watch:
    """Asks one watcher again and again, and hands each notice on once.

    Args:
        watcher: asked every POLL_SECONDS.
        tell: gets each notice; returns at once.
        clock: to wait on.
    """

    def __init__(self, watcher: Watcher, tell: Callable[[Notice], None], clock: Clock) -> None:
        self._watcher = watcher
        self._tell = tell
        self._clock = clock
        self._told: Set[Notice] = set()
        self._silent = False

    def run(self) -> None:
        """Never returns."""
        while True:
            self.look()
            self._clock.sleep(POLL_SECONDS)

    def look(self) -> None:
        """Ask once; a service that does not answer is no notice, and is mentioned once until it answers again."""
        try:
            notices = self._watcher()
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not self._silent:
                say(f"the metadata service does not answer: {error}")
            self._silent = True
            return
        self._silent = False
        for notice in notices:
            if notice not in self._told:
                self._told.add(notice)
                self._tell(notice)


def watcher_of(provider: str, clock: Clock) -> Optional[Watcher]:
    """The watcher of a cloud; None for a cloud whose notices come to the broker only."""
    make = WATCHERS.get(provider)
    return make(os.environ, clock) if make else None


def say_farewell(provider: str) -> None:
    """Tell a cloud that waits for it that the machine is ready to go: nothing is left to do here."""
    farewell = FAREWELLS.get(provider)
    if farewell is not None and farewell(os.environ):
        say("the cloud was told that it may take the machine now")


def _text(value: object) -> Optional[str]:
    return value if isinstance(value, str) and value else None
