"""Time of an adapter that a test lets pass."""

from spotferry.providers.pace import Pace


class FakePace:
    """Time that passes only when somebody sleeps, or says so."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        """Let the time pass and note the pause."""
        self.pauses.append(seconds)
        self.seconds += seconds

    def pace(self) -> Pace:
        """What the adapter is given."""
        return Pace(monotonic=lambda: self.seconds, sleep=self.sleep, random=lambda: 1.0)
