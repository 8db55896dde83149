"""Where the API is, and the key to it: the deployment's secret, or the environment's. No SDK."""

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta

URL = "https://api.paperspace.com/v1"
ENDPOINT = "PAPERSPACE_API_URL"
"""Variable that leads to another endpoint: a laptop's."""
SECRET = "paperspace/api-key"  # noqa: S105 - its name
VARIABLE = "PAPERSPACE_API_KEY"
"""What stands for the secret on a laptop, under the name that Paperspace's own tools read."""
KEPT_FOR = timedelta(minutes=5)
"""How long a key is used before it is read again; one that is refused is read again at once."""


def endpoint() -> str:
    """The address of the API, as the environment says."""
    return os.environ.get(ENDPOINT, URL).rstrip("/")


class ApiKey:
    """Gives the key, and reads it again now and then, so that a new one comes into use; safe to share between threads.

    Args:
        secret: gives a secret of the deployment by its name; Misconfigured where there is none.
        monotonic: seconds.
    """

    def __init__(self, secret: Callable[[str], str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._secret = secret
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._read: tuple[float, str] | None = None

    def __call__(self) -> str:
        """The key.

        Raises:
            Misconfigured: the deployment has none.
        """
        own = os.environ.get(VARIABLE, "").strip()
        if own:
            return own
        with self._lock:
            now = self._monotonic()
            if self._read is None or now - self._read[0] >= KEPT_FOR.total_seconds():
                self._read = (now, self._secret(SECRET))
            return self._read[1]

    def forget(self) -> None:
        """The key was refused: read it anew when it is asked for next."""
        with self._lock:
            self._read = None
