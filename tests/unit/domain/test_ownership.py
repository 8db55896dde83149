"""A machine is nobody's only when its record, or the lack of one, says so."""

import pytest

from spotferry.domain.ownership import why_nobodys
from spotferry.types.instance import Attempt, Instance
from spotferry.types.job import Job
from tests.builders import NOW, a_job, an_attempt

MINE = an_attempt(1)
MACHINE = Instance(provider="aws", region="us-east-1", allocated_id=MINE.allocated_id, cedana_id=MINE.cedana_id)
JOB = a_job(open_attempts=(MINE.cedana_id,))


@pytest.mark.parametrize(
    "attempt",
    [MINE, an_attempt(1, allocated_id=""), an_attempt(1, ending=True), an_attempt(1, notice_at=NOW)],
    ids=["answered", "not answered yet", "ending", "under notice"],
)
def test_a_machine_whose_attempt_is_open_is_its_jobs(attempt: Attempt) -> None:
    """Whatever is planned for it: the job sees to its end."""
    assert why_nobodys(MACHINE, attempt, JOB) == ""


@pytest.mark.parametrize(
    ("attempt", "job", "words"),
    [
        (None, None, "no record of it"),
        (an_attempt(1, gone_at=NOW), JOB, "was closed at 2026-05-04 12:00:00Z"),
        (an_attempt(1, allocated_id="i-other"), JOB, "has another machine, i-other"),
        (MINE, None, "no record of its job"),
        (MINE, a_job(open_attempts=("i-2",)), "does not count it among its machines"),
    ],
    ids=["no record", "closed", "a second one", "no job", "not the job's"],
)
def test_a_machine_that_no_record_wants_is_nobodys(attempt: Attempt | None, job: Job | None, words: str) -> None:
    """The reason is told in words."""
    assert words in why_nobodys(MACHINE, attempt, job)
