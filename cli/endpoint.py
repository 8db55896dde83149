"""Where the broker is."""

import json
from pathlib import Path
from urllib.parse import urlsplit

from cli.errors import Failed, NoBroker, UsageProblem
from cli.settings import Settings
from spotferry.types.words import shown


def broker_url(settings: Settings) -> str:
    """The broker's address: as given, else that of the local cloud.

    Raises:
        NoBroker: nobody gave one, and no local cloud runs here.
        UsageProblem: what was given is no address.
    """
    url = settings.url.strip() or str(local_stack(settings.state_dir()).get("api_url", ""))
    if not url:
        raise NoBroker
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageProblem(f"--url: {shown(url)} is not an address such as https://broker.example.com")
    return url.rstrip("/")


def local_stack(state_dir: Path) -> dict[str, object]:
    """What the local cloud says about itself; empty when none was started.

    Raises:
        Failed: its record is there, but not readable.
    """
    path = state_dir / "stack.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Failed(
            f"{path} cannot be read ({error}); run `spotferry local down`, then `spotferry local up`"
        ) from error
    if not isinstance(record, dict):
        raise Failed(f"{path} is damaged; run `spotferry local down`, then `spotferry local up`")
    return record
