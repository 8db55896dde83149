"""Where something may be the reaper looks at every poll, elsewhere now and then."""

from datetime import datetime, timedelta

from spotferry.usecases.reap_rounds import LATELY, SELDOM, Rounds
from tests.builders import NOW

HERE, THERE = ("aws", "us-east-1"), ("aws", "eu-west-1")


def after(**by: float) -> datetime:
    """So long after the first poll."""
    return NOW + timedelta(**by)


def minutes_listed(rounds: Rounds, until: int, busy_until: int = -1) -> list[int]:
    """The minutes in which HERE is listed, of a poll a minute; it is in use until the one."""
    found = []
    for minute in range(until):
        busy = {HERE} if minute <= busy_until else set()
        if HERE in rounds.due([HERE], busy, after(minutes=minute)):
            rounds.listed(HERE, after(minutes=minute))
            found.append(minute)
    return found


def test_a_process_that_starts_knows_nothing_and_looks_everywhere() -> None:
    """Every region is listed at every poll first, then once in a while: a restart makes no gap."""
    lately, seldom = int(LATELY / timedelta(minutes=1)), int(SELDOM / timedelta(minutes=1))
    often = list(range(lately + 1))
    assert minutes_listed(Rounds(), 60) == [*often, *range(lately + seldom, 60, seldom)]


def test_a_region_in_use_is_listed_at_every_poll_and_a_while_after() -> None:
    """What a launch left behind comes to light while somebody still looks."""
    lately = int(LATELY / timedelta(minutes=1))
    assert minutes_listed(Rounds(), 101 + lately, busy_until=100) == list(range(101 + lately))
    assert minutes_listed(Rounds(), 60, busy_until=30)[: 31 + lately] == list(range(31 + lately))
    assert 31 + lately not in minutes_listed(Rounds(), 60, busy_until=30)


def test_a_region_with_a_machine_that_no_record_names_is_in_use() -> None:
    """A machine that was seen is looked for at the next poll."""
    rounds = Rounds()
    minutes_listed(rounds, 36)
    assert rounds.due([HERE], (), after(minutes=36)) == []
    rounds.use(HERE, after(minutes=36))
    assert rounds.due([HERE], (), after(minutes=37)) == [HERE]


def test_a_listing_that_failed_is_tried_at_the_next_poll() -> None:
    """Only a listing that was whole counts as one."""
    rounds = Rounds()
    minutes_listed(rounds, 45)
    assert [rounds.due([HERE], (), after(minutes=minute)) for minute in (45, 46)] == [[HERE], [HERE]]


def test_the_region_that_has_waited_longest_comes_first() -> None:
    """When time is short, none is left out for ever."""
    rounds = Rounds()
    rounds.due([HERE, THERE], (), NOW)
    rounds.listed(HERE, NOW)
    assert rounds.due([HERE, THERE], (), after(minutes=1)) == [THERE, HERE]
    rounds.listed(THERE, after(minutes=1))
    assert rounds.due([THERE, HERE], (), after(minutes=2)) == [HERE, THERE]
