"""What every store promises about the reaper's notes."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from spotferry.types.job import JobState
from tests.contract.store_records import NOW, WRITERS, Contract, Store, World, change, gone, with_attempts

UNTIL = NOW + timedelta(minutes=15)


class SightingContract(Contract):
    """Regions that were ever used; machines that were seen without an owner."""

    def test_a_region_is_used_from_its_first_launch_on_for_ever(self, store: Store, world: World) -> None:
        """The intent alone is enough; that all machines there are gone, and the job over, changes nothing."""
        attempts = [world.attempt(1), world.attempt(2, region="eu-west-1")]
        assert not [region for region in store.used_regions() if region[0] == world.provider]
        view = with_attempts(store, world, *attempts)
        used = [(world.provider, "eu-west-1"), (world.provider, "us-east-1")]
        assert [region for region in store.used_regions() if region[0] == world.provider] == used
        change(store, view, *(gone(a) for a in attempts), state=JobState.DONE, open_attempts=())
        assert [region for region in store.used_regions() if region[0] == world.provider] == used

    def test_the_first_sighting_counts_until_its_end(self, store: Store, world: World) -> None:
        """A later one changes neither the time nor the end; at its end it counts no more, stored or not."""
        where = world.provider, "us-east-1"
        assert store.sightings(*where, NOW) == {}
        store.note_sighting(*where, "i-1", NOW, UNTIL, "no record")
        store.note_sighting(*where, "i-1", NOW + timedelta(minutes=1), UNTIL + timedelta(minutes=1), "no record")
        assert store.sightings(*where, UNTIL - timedelta(microseconds=1)) == {"i-1": NOW}
        assert store.sightings(*where, UNTIL) == {}

    def test_after_its_end_a_machine_is_seen_for_the_first_time_again(self, store: Store, world: World) -> None:
        """An old sighting is no half of a new proof."""
        where = world.provider, "us-east-1"
        store.note_sighting(*where, "i-1", NOW, UNTIL, "no record")
        store.note_sighting(*where, "i-1", UNTIL, UNTIL + timedelta(minutes=15), "no record")
        assert store.sightings(*where, UNTIL) == {"i-1": UNTIL}

    def test_sightings_are_by_cloud_and_region(self, store: Store, world: World) -> None:
        """The same id elsewhere is another machine; sightings are no bans."""
        other = World()
        places = [(world.provider, "us-east-1"), (world.provider, "eu-west-1"), (other.provider, "us-east-1")]
        for minutes, place in enumerate(places):
            store.note_sighting(*place, "i-1", NOW + timedelta(minutes=minutes), UNTIL, "no record")
        store.note_sighting(*places[0], "i-2", NOW, UNTIL, "no record")
        assert store.sightings(*places[0], NOW) == {"i-1": NOW, "i-2": NOW}
        assert store.sightings(*places[1], NOW) == {"i-1": NOW + timedelta(minutes=1)}
        assert store.bans([world.provider, other.provider], NOW) == {}

    def test_of_polls_that_meet_one_was_first(self, store: Store, world: World) -> None:
        """However many note the same machine at once, one time stands."""
        where = world.provider, "us-east-1"
        times = [NOW + timedelta(seconds=n) for n in range(WRITERS)]
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda at: store.note_sighting(*where, "i-1", at, UNTIL, "no record"), times))
        first = store.sightings(*where, NOW)["i-1"]
        assert first in times
        store.note_sighting(*where, "i-1", NOW - timedelta(seconds=1), UNTIL, "no record")
        assert store.sightings(*where, NOW) == {"i-1": first}
