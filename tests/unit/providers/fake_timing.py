"""Time of an adapter that a test lets pass."""

from spotferry.providers.retries import Timing


class FakeTiming:
    """Time that passes only when somebody sleeps, or says so."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        """Let the time pass and note the pause."""
        self.pauses.append(seconds)
        self.seconds += seconds

    def timing(self) -> Timing:
        """What the adapter is given."""
        return Timing(monotonic=lambda: self.seconds, sleep=self.sleep, random=lambda: 1.0)
