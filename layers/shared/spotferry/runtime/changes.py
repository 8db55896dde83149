"""What every function that changes jobs is made of: load, decide, save, perform, and the question to the cloud."""

from spotferry.runtime.wiring import Wiring, utc_now
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.launch import AskCloud


class Changes:
    """Changes of jobs over one wiring; a base for the families of use cases that make them."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    @property
    def change(self) -> ChangeJob:
        """Load, decide, save, perform."""
        return ChangeJob(self._wiring.store, self._wiring.queue, utc_now)

    @property
    def ask_cloud(self) -> AskCloud:
        """Launches whose intent is saved."""
        return AskCloud(self.change, self._wiring.clouds, self._wiring.store)
