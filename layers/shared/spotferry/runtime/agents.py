"""The use cases behind the agents' API."""

from spotferry.runtime.changes import Changes
from spotferry.runtime.wiring import utc_now, wiring
from spotferry.usecases.agents import Authenticate
from spotferry.usecases.greet_agent import GreetAgent
from spotferry.usecases.hear_agent import HearAgent
from spotferry.usecases.keys import agent_key
from spotferry.usecases.prune_checkpoints import PruneCheckpoints
from spotferry.usecases.take_archive import TakeArchive
from spotferry.usecases.word import SayWord


class Agents(Changes):
    """What agents may ask for and report."""

    def download(self, sha256: str) -> bytes:
        """The agent of this digest, as a machine fetches it.

        Raises:
            NotFound: no machine was ever launched with it.
        """
        return self._wiring.objects.get(agent_key(sha256))

    @property
    def authenticate(self) -> Authenticate:
        """Agents' calls."""
        return Authenticate(self.change, self._wiring.token_of)

    @property
    def say_word(self) -> SayWord:
        """The word to an agent."""
        return SayWord(self._wiring.store, self._wiring.objects, self._wiring.settings.pace, utc_now)

    @property
    def greet_agent(self) -> GreetAgent:
        """Hellos."""
        return GreetAgent(self.change, self.say_word, self._wiring.parameters, self._wiring.parameters)

    @property
    def hear_agent(self) -> HearAgent:
        """Heartbeats and reports."""
        return HearAgent(self.change, self.say_word, self._wiring.objects, self.ask_cloud)

    @property
    def take_archive(self) -> TakeArchive:
        """Checkpoints and outputs."""
        prune = PruneCheckpoints(self._wiring.store, self._wiring.objects, utc_now)
        return TakeArchive(self.change, self.say_word, self.hear_agent, self._wiring.objects, prune)


def agents() -> Agents:
    """The function's own, over its own wiring."""
    return Agents(wiring())
