"""A clock for tests: time passes only when somebody waits."""

from spotferry.agent.clock import Clock


class ManualClock(Clock):
    """Starts at 1000 seconds.

    Attributes:
        now: seconds; may be set.
        slept: every wait so far.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """Now."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Pass the time."""
        self.slept.append(seconds)
        self.now += seconds
