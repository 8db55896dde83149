"""An agent's call is let in only for its own, living attempt."""

import pytest

from spotferry.domain.view import PlaceJob
from spotferry.types import StaleAttempt, Unauthenticated
from tests.unit.usecases.world import World, bearer, key_of, state_change, token_of

FOREIGN = "0" * 64


def test_the_first_hello_binds_the_key(world: World) -> None:
    """Token and key of the first hello open the attempt from then on, for every call."""
    _, attempt = world.launched()
    world.authenticate(bearer(attempt), hello=True)
    assert world.authenticate(bearer(attempt)).cedana_id == attempt.cedana_id
    assert world.authenticate(bearer(attempt), hello=True).cedana_id == attempt.cedana_id


def test_the_key_itself_is_not_stored(world: World) -> None:
    """What is kept is a digest: who reads the table cannot speak as the agent."""
    job, attempt = world.launched()
    world.authenticate(bearer(attempt), hello=True)
    stored = world.attempt(job).agent_key_sha256
    assert len(stored) == len(FOREIGN)
    assert stored != key_of(attempt)


def test_a_call_before_the_first_hello_is_refused(world: World) -> None:
    """No key is bound yet: the token alone opens nothing."""
    _, attempt = world.launched()
    with pytest.raises(Unauthenticated):
        world.authenticate(bearer(attempt))


def test_a_second_key_is_refused(world: World) -> None:
    """The task can read the token through the metadata service, but cannot speak as the agent."""
    _, attempt = world.set_up()
    for hello in (True, False):
        with pytest.raises(Unauthenticated, match="key"):
            world.authenticate(bearer(attempt, key=FOREIGN), hello=hello)


def test_of_two_hellos_at_once_one_key_wins(world: World) -> None:
    """A hello that finds another key bound in between is refused."""
    _, attempt = world.launched()
    taken = world.store.bind_agent(attempt.cedana_id, "ee" * 32)
    assert taken
    with pytest.raises(Unauthenticated):
        world.authenticate(bearer(attempt), hello=True)


def test_a_wrong_token_is_refused(world: World) -> None:
    """A token that is not the attempt's opens nothing, and binds no key."""
    job, attempt = world.launched()
    with pytest.raises(Unauthenticated):
        world.authenticate(bearer(attempt, token=FOREIGN), hello=True)
    assert world.attempt(job).agent_key_sha256 == ""


def test_another_instances_token_is_refused(world: World) -> None:
    """A token opens its own instance only."""
    _, mine = world.set_up()
    _, other = world.set_up()
    with pytest.raises(Unauthenticated):
        world.authenticate(bearer(mine, token=token_of(other.cedana_id, other.epoch)))


def test_an_instance_that_is_not_known_is_refused_in_the_same_words(world: World) -> None:
    """Nobody learns which instances exist."""
    _, attempt = world.launched()
    said = []
    for who in (attempt.model_copy(update={"cedana_id": "i-none"}), attempt):
        with pytest.raises(Unauthenticated) as refused:
            world.authenticate(bearer(who, token=FOREIGN))
        said.append(str(refused.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer i-1",
        f"Bearer i-1.{FOREIGN}",
        f"Basic i-1.{FOREIGN}.{FOREIGN}",
        f"Bearer i-1.{FOREIGN}.{FOREIGN}\n",
        f"Bearer ../x.{FOREIGN}.{FOREIGN}",
        f"Bearer {'i' * 65}.{FOREIGN}.{FOREIGN}",
        f"Bearer i-1.{FOREIGN.replace('0', 'G')}.{FOREIGN}",
        f"Bearer i-1.{chr(0x660) * 64}.{FOREIGN}",
    ],
)
def test_a_header_that_is_no_agents_is_refused(world: World, header: str) -> None:
    """Whatever is not of the form is refused before anything is read."""
    with pytest.raises(Unauthenticated):
        world.authenticate(header, hello=True)


@pytest.mark.parametrize("epoch", [0, 99, "x"])
def test_an_epoch_of_another_attempt_is_over(world: World, epoch: object) -> None:
    """Who speaks for another number than its own is told to stop."""
    _, attempt = world.set_up()
    assert world.authenticate(bearer(attempt), attempt.epoch) == world.authenticate(bearer(attempt))
    with pytest.raises(StaleAttempt, match="number 1"):
        world.authenticate(bearer(attempt), epoch)


def test_a_machine_that_is_gone_may_not_speak(world: World) -> None:
    """The right token and key of an ended attempt are told that it is over."""
    _, attempt = world.set_up()
    world.interruption(state_change(attempt, "terminated"))
    with pytest.raises(StaleAttempt):
        world.authenticate(bearer(attempt))


def test_who_is_turned_away_may_repeat_what_was_saved(world: World) -> None:
    """What a save before a crash left owed is sent before an ended attempt is refused; long after, nothing is."""
    job, attempt = world.running()
    world.interruption(state_change(attempt, "terminated"))
    lost = world.queue.take()
    assert PlaceJob(job.job_id) in lost
    with pytest.raises(StaleAttempt):
        world.authenticate(bearer(attempt))
    assert world.queue.take() == lost
    world.clock.move(minutes=3)
    with pytest.raises(StaleAttempt):
        world.authenticate(bearer(attempt))
    assert world.queue.take() == []


def test_a_gone_machine_that_never_spoke_cannot_begin_to(world: World) -> None:
    """A first hello after the end binds nothing."""
    job, attempt = world.launched()
    world.interruption(state_change(attempt, "terminated"))
    with pytest.raises((StaleAttempt, Unauthenticated)):
        world.authenticate(bearer(attempt), hello=True)
    assert world.attempt(job, 0).agent_key_sha256 == ""
