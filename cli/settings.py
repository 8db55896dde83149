"""What holds for one run of the command."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import httpx

LOCAL_STATE_DIR = Path(".spotferry")
"""Where the cloud on a laptop keeps its state, below the folder that it was started in."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the broker is reached.

    Attributes:
        url: the broker's address as given; "" to find it.
        auth: "none", "iam", "token", or "auto" to tell from the address and the environment.
        local_state_dir: where the local cloud's state is, as given; None to look for it.
        transport: what carries requests; None for the network.
        sleep: waits between two polls or tries.
    """

    url: str = ""
    auth: str = "auto"
    local_state_dir: Path | None = None
    transport: "httpx.BaseTransport | None" = None
    sleep: Callable[[float], None] = time.sleep

    def state_dir(self) -> Path:
        """The local cloud's folder: as given, else the nearest one upwards from here, else one here."""
        if self.local_state_dir is not None:
            return self.local_state_dir
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / LOCAL_STATE_DIR / "stack.json").is_file():
                return folder / LOCAL_STATE_DIR
        return here / LOCAL_STATE_DIR


def settings() -> Settings:
    """The settings of the command that is running."""
    context = click.get_current_context(silent=True)
    found = context.find_object(Settings) if context else None
    return found or Settings(url=os.environ.get("SPOTFERRY_URL", ""), auth=os.environ.get("SPOTFERRY_AUTH", "auto"))
