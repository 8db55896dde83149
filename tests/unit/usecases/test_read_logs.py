"""A job's log, attempt after attempt: each byte once, whatever was sent twice."""

import pytest

from spotferry.types import Attempt, InvalidInput, NotFound
from spotferry.usecases.hear_agent import LogChunk
from spotferry.usecases.keys import log_key
from spotferry.usecases.read_logs import Position, parse_cursor
from tests.unit.usecases.world import World, state_change


def say(world: World, attempt: Attempt, offset: int, text: str) -> None:
    """The agent sends a piece of its log."""
    world.beat(attempt, log=LogChunk(offset=offset, text=text))


def read(world: World, job_id: str, cursor: str = "") -> tuple[str, str]:
    """All that there is after the cursor, page by page, and the cursor after it."""
    text = ""
    for _ in range(1000):
        page = world.read_logs(job_id, cursor)
        text += "".join(chunk["text"] for chunk in page["chunks"])
        cursor = page["cursor"]
        if not page["more"]:
            return text, cursor
    raise AssertionError("the log has no end")


def test_a_job_without_a_log_has_none_yet(world: World) -> None:
    """Nothing was printed: no text, a cursor to ask with again, not finished."""
    job, _ = world.launched()
    page = world.read_logs(job.job_id)
    assert (page["chunks"], page["cursor"], page["more"], page["finished"]) == ([], "1.0.0", False, False)
    assert (page["state"], page["reason"]) == ("PROVISIONING", world.job(job).reason)


def test_a_cursor_goes_on_where_the_answer_before_ended(world: World) -> None:
    """Text is handed out once, in order."""
    job, attempt = world.running()
    say(world, attempt, 0, "one\n")
    text, cursor = read(world, job.job_id)
    assert text == "one\n"
    say(world, attempt, 4, "two\n")
    assert read(world, job.job_id, cursor) == ("two\n", "1.4.8")
    assert read(world, job.job_id, "1.4.8") == ("", "1.4.8")


def test_a_piece_whose_answer_was_lost_comes_again_longer_and_is_read_once(world: World) -> None:
    """The agent sends from the last offset it knows of; by then there is more."""
    job, attempt = world.running()
    say(world, attempt, 0, "one\n")
    text, cursor = read(world, job.job_id)
    say(world, attempt, 0, "one\ntwo\n")
    say(world, attempt, 8, "three\n")
    assert text + read(world, job.job_id, cursor)[0] == "one\ntwo\nthree\n"
    assert read(world, job.job_id)[0] == "one\ntwo\nthree\n"


def test_a_piece_sent_again_the_same_is_read_once(world: World) -> None:
    """A repeat overwrites itself."""
    job, attempt = world.running()
    say(world, attempt, 0, "one\n")
    say(world, attempt, 0, "one\n")
    assert read(world, job.job_id)[0] == "one\n"


def test_pieces_that_bring_nothing_new_do_not_stop_the_reader(world: World) -> None:
    """More repeats than a page holds: the reader goes past them and comes to the end."""
    job, attempt = world.running()
    say(world, attempt, 0, "x" * 500)
    for begin in range(1, 250):
        world.objects.put(log_key(job.job_id, attempt.epoch, begin, begin + 1), b"x")
    say(world, attempt, 500, "end")
    assert read(world, job.job_id)[0] == "x" * 500 + "end"


def test_text_of_many_bytes_is_cut_at_its_characters(world: World) -> None:
    """Offsets count bytes; a piece that came again longer is cut where the first one ended."""
    job, attempt = world.running()
    say(world, attempt, 0, "é")
    _, cursor = read(world, job.job_id)
    say(world, attempt, 0, "éü\n")
    assert read(world, job.job_id, cursor)[0] == "ü\n"


def test_the_next_attempt_begins_at_its_own_beginning(world: World) -> None:
    """Chunks name attempt and offset; a new machine's text follows the old one's."""
    job, attempt = world.running()
    say(world, attempt, 0, "first\n")
    world.interruption(state_change(attempt, "terminated"))
    world.perform()
    second = world.attempt(job)
    world.hello(second)
    say(world, second, 0, "second\n")
    assert world.read_logs(job.job_id)["chunks"] == [
        {"epoch": 1, "offset": 0, "text": "first\n"},
        {"epoch": 2, "offset": 0, "text": "second\n"},
    ]


def test_many_pieces_are_pages(world: World) -> None:
    """No answer is larger than a function may give: `more` says to ask again at once."""
    job, attempt = world.running()
    for number in range(120):
        say(world, attempt, number * 2, f"{number % 10}\n")
    first = world.read_logs(job.job_id)
    assert len(first["chunks"]) == 100
    assert first["more"]
    assert not first["finished"]
    assert len(read(world, job.job_id)[0]) == 240


def test_large_pieces_are_pages(world: World) -> None:
    """A page ends before two MiB of text are exceeded."""
    job, attempt = world.running()
    size = 900 * 1024
    for number in range(4):
        say(world, attempt, number * size, "x" * size)
    assert [len(world.read_logs(job.job_id)["chunks"]), world.read_logs(job.job_id)["more"]] == [2, True]
    assert len(read(world, job.job_id)[0]) == 4 * size


def test_a_job_that_is_over_has_a_last_page(world: World) -> None:
    """Nothing more will come once the job is final and all was read."""
    job, attempt = world.running()
    world.report(attempt, "task_exited", LogChunk(offset=0, text="bye"), exit_code=0)
    page = world.read_logs(job.job_id)
    assert (page["finished"], page["more"]) == (True, False)


def test_following_asks_the_machine_for_attention_now_and_then(world: World) -> None:
    """The watch is renewed when half of it is over, not at every look; a final job is not watched."""
    job, attempt = world.running()
    world.read_logs(job.job_id, follow=True)
    until = world.store.watched_until(job.job_id)
    world.clock.move(seconds=5)
    world.read_logs(job.job_id, follow=True)
    assert world.store.watched_until(job.job_id) == until
    world.clock.move(seconds=15)
    world.read_logs(job.job_id, follow=True)
    renewed = world.store.watched_until(job.job_id)
    assert renewed is not None
    assert renewed > world.clock.now
    world.report(attempt, "task_exited", exit_code=0)
    world.clock.move(minutes=1)
    world.read_logs(job.job_id, follow=True)
    assert world.store.watched_until(job.job_id) == renewed


@pytest.mark.parametrize(
    "cursor", ["x", "1.2", "1.2.3.4", "-1.0.0", "1.0." + "9" * 16, "1.0.0\n", ",", "1.0.0,", ",".join(["1.0.0"] * 65)]
)
def test_a_cursor_that_nobody_gave_out_is_refused(world: World, cursor: str) -> None:
    """The problem names the field."""
    job, _ = world.running()
    with pytest.raises(InvalidInput, match="cursor"):
        world.read_logs(job.job_id, cursor)


def test_a_job_that_does_not_exist_has_no_log(world: World) -> None:
    """An unknown id is said to be unknown."""
    with pytest.raises(NotFound, match="j-none"):
        world.read_logs("j-none")


def test_two_attempts_that_print_at_the_same_time_are_both_read(world: World) -> None:
    """At a handover the successor sets up while the owner still prints: no line of either is lost or told twice."""
    job, owner, successor = world.interrupted()
    world.hello(successor)
    text, cursor = "", ""
    for number in range(3):
        say(world, owner, number * 2, f"{number}\n")
        new, cursor = read(world, job.job_id, cursor)
        text += new
        say(world, successor, number * 2, f"{'abc'[number]}\n")
    text += read(world, job.job_id, cursor)[0]
    assert sorted(text.split()) == ["0", "1", "2", "a", "b", "c"]


def test_attempts_that_are_over_and_read_leave_the_cursor(world: World) -> None:
    """A job with many machines behind it has no cursor as long as its history."""
    job, attempt = world.running()
    for _ in range(4):
        say(world, attempt, 0, "x\n")
        world.interruption(state_change(attempt, "terminated"))
        world.clock.move(hours=1)
        world.perform()
        attempt = world.attempt(job)
        world.hello(attempt)
    text, cursor = read(world, job.job_id)
    assert text == "x\n" * 4
    assert cursor == "5.0.0"


def test_a_position_is_found_in_its_key() -> None:
    """Where a piece begins and ends stands in its key."""
    assert Position.of_key(log_key("j-1", 3, 10, 20)) == Position(3, 10, 20)


def test_a_cursor_survives_its_text() -> None:
    """What is handed out is read back the same, position by position."""
    positions = [Position(3, 10, 20), Position(4, 0, 7)]
    assert list(parse_cursor(",".join(map(str, positions))).values()) == positions
