"""What the user data hands over, and where the agent keeps things."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping


@dataclass(frozen=True)
class Settings:
    """The agent's settings; read from standard input, so that they are in no argument list and no environment.

    Attributes:
        broker_url: base address of the broker, without a slash at its end.
        instance_id: our id of this attempt.
        epoch: the attempt's number.
        token: opens the attempt together with a key that the agent makes up; not part of the repr.
        provider: the cloud that this machine is of.
    """

    broker_url: str
    instance_id: str
    epoch: int
    token: str
    provider: str

    def __repr__(self) -> str:
        """Without the token."""
        return f"Settings({self.broker_url}, {self.instance_id}, epoch {self.epoch}, {self.provider})"

    @classmethod
    def parse(cls, text: str) -> Settings:
        """The settings in JSON text.

        Raises:
            ValueError: the text is not JSON, or lacks a setting.
        """
        try:
            given = json.loads(text)
            return cls(
                broker_url=str(given["broker_url"]).rstrip("/"),
                instance_id=str(given["instance_id"]),
                epoch=int(given["epoch"]),
                token=str(given["token"]),
                provider=str(given["provider"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"the settings lack {error}") from None


@dataclass(frozen=True)
class Places:
    """Directories of the agent.

    Attributes:
        base: everything the agent keeps.
        privileged: the agent is root on a machine of its own, so it makes a user for the task.
    """

    base: Path
    privileged: bool

    @classmethod
    def of(cls, environ: Mapping[str, str], user_id: int) -> Places:
        """The directory SPOTFERRY_BASE where it is set, with no account touched; else by who the agent is."""
        if environ.get("SPOTFERRY_BASE"):
            return cls(Path(environ["SPOTFERRY_BASE"]), privileged=False)
        if user_id == 0:
            return cls(Path("/var/lib/spotferry"), privileged=True)
        return cls(Path(environ.get("HOME") or "/tmp") / ".spotferry", privileged=False)  # noqa: S108  (as user data)

    def make(self) -> None:
        """Create the directories; the spool and the log are the agent's alone."""
        self.base.mkdir(parents=True, exist_ok=True)
        self.scripts.mkdir(exist_ok=True)
        for private in (self.spool, self.log.parent):
            private.mkdir(exist_ok=True)
            os.chmod(private, 0o700)  # noqa: PTH101  (the mode of mkdir is subject to the umask)

    @property
    def spool(self) -> Path:
        """Archives on their way in or out."""
        return self.base / "spool"

    @property
    def scripts(self) -> Path:
        """Scripts that the task's user reads."""
        return self.base / "scripts"

    @property
    def log(self) -> Path:
        """What setup and task print."""
        return self.base / "log" / "job.log"
