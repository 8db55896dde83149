"""Whether an input that is not in the broker's bucket is there."""

from typing import Protocol


class InputProbe(Protocol):
    """Asks whoever has an input, without credentials."""

    def why_missing(self, url: str) -> str:
        """Why nobody can fetch it, in words; "" where it is there, or where only the machine can tell.

        Never raises, and takes seconds at most.
        """
        ...
