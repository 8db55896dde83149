"""Jobs, their timeline and their checkpoints in DynamoDB."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from types import MappingProxyType

from pynamodb.exceptions import DoesNotExist, UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from spotferry.domain.view import Decision, Policy, View
from spotferry.ports.store import Page
from spotferry.store.changes import changes_of
from spotferry.store.cursors import Position, check_limit, read_cursor, write_cursor
from spotferry.store.dynamo_save import write_changes, write_new
from spotferry.store.failures import condition_failed, through_collisions, translating
from spotferry.store.keys import SHARDS, is_key, parse_sortable, region_key, sortable
from spotferry.store.models import InstanceItem, JobItem, TableNames, bind
from spotferry.store.records import read_attempt, read_checkpoint, read_entry, read_job
from spotferry.types.errors import NotFound
from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job, TimelineEntry
from spotferry.types.words import cut

REGISTER = "register#regions"
"""Key of the item in Instances that lists the keys of the index of the living."""

LARGEST_NUMBER = 10**9
"""No job has more checkpoints: a larger number names none."""


class DynamoJobs:
    """The job half of the store; `dynamo.DynamoStore` is the whole of it.

    Args:
        tables: the tables' names.
        policy: what the views it loads carry.
        host: the service's address; None: as the environment says, else AWS itself.
        region: where the tables are.
        pause: waits for so many seconds, between tries that met another writer.
    """

    def __init__(
        self,
        tables: TableNames,
        policy: Policy,
        *,
        host: str | None = None,
        region: str,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tables = bind(tables, region, host)
        self._policy = policy
        self._pause = pause
        self._registered: frozenset[str] = frozenset()

    def create_job(self, job: Job, entry: TimelineEntry, checkpoints: Sequence[Checkpoint] = ()) -> None:
        """Write a new job, the first entry of its timeline and the checkpoints it begins with in one transaction."""
        assert job.job_id == entry.job_id, "the first entry is about the new job"
        assert job.revision == entry.revision, "the first entry has the new job's revision"
        write_new(self._tables, job, entry, checkpoints, self._pause)

    def get_job(self, job_id: str) -> Job:
        """The job."""
        return read_job(self._get_item(job_id))

    def load(self, job_id: str, instance_id: str | None = None) -> View:
        """The job, its open attempts and the one asked for, in two consistent reads.

        An attempt may be newer than the job when a save comes between the reads; the save of a decision about such a
        view conflicts, because whoever changes an attempt raises the job's revision.
        """
        job = self.get_job(job_id)
        found = self._attempts([*job.open_attempts, *([instance_id] if instance_id is not None else [])])
        if instance_id is not None and (instance_id not in found or found[instance_id].job_id != job_id):
            raise NotFound(f"job {job_id} has no instance {cut(instance_id)}")
        return View(job, MappingProxyType(found), self._policy)

    def save(self, before: View, decision: Decision) -> None:
        """Write what the decision changed in one transaction, if nobody saved first."""
        changes = changes_of(before, decision)
        if changes is None:
            return
        self._register([*changes.created, *changes.updated])
        write_changes(self._tables, changes, self._pause)

    def list_jobs(self, owner: str, limit: int, cursor: str | None = None) -> Page:
        """The owner's jobs, newest first, by index."""
        check_limit(limit)
        after = read_cursor(owner, cursor) if cursor is not None else None
        if not owner:
            return Page([])
        with translating(f"list the jobs of {owner}"):
            found = self._tables.jobs.by_owner.query(
                owner,
                scan_index_forward=False,
                limit=limit + 1,
                last_evaluated_key=_index_key(after) if after else None,
            )
            items = list(found)
        last = items[limit - 1] if len(items) > limit else None
        jobs = [read_job(item, lenient=True) for item in items[:limit]]
        return Page(jobs, write_cursor(Position(owner, last.created_at, last.job_id)) if last else None)

    def unsettled_jobs(self) -> Iterator[str]:
        """Ids of the jobs that are not settled, shard by shard, beginning with another one every time."""
        first = secrets.randbelow(len(SHARDS))
        for shard in (*SHARDS[first:], *SHARDS[:first]):
            with translating("list the unsettled jobs"):
                for item in self._tables.jobs.unsettled.query(shard):
                    yield item.job_id

    def watch_job(self, job_id: str, until: datetime) -> None:
        """Somebody follows the job's log until then; an earlier end than the one that is stored changes nothing."""
        if not is_key(job_id):
            return
        jobs, text = self._tables.jobs, sortable(until)
        later = jobs.watched_until.does_not_exist() | (jobs.watched_until < text)
        with translating(f"note that job {job_id} is watched"):
            self._update(jobs(job_id), [jobs.watched_until.set(text)], jobs.job_id.exists() & later)

    def watched_until(self, job_id: str) -> datetime | None:
        """Until when somebody follows the job's log."""
        try:
            text = self._get_item(job_id).watched_until
        except NotFound:
            return None
        return parse_sortable(text) if text else None

    def timeline(self, job_id: str) -> Sequence[TimelineEntry]:
        """The job's history, oldest first."""
        if not is_key(job_id):
            return []
        with translating(f"read the timeline of job {job_id}"):
            return [read_entry(i.body) for i in self._tables.timeline.query(job_id, consistent_read=True)]

    def checkpoints(self, job_id: str) -> Sequence[Checkpoint]:
        """The job's checkpoints, newest first."""
        if not is_key(job_id):
            return []
        with translating(f"read the checkpoints of job {job_id}"):
            items = self._tables.checkpoints.query(job_id, consistent_read=True, scan_index_forward=False)
            return [read_checkpoint(item.body) for item in items]

    def get_checkpoint(self, job_id: str, number: int) -> Checkpoint:
        """One checkpoint."""
        missing = NotFound(f"job {job_id} has no checkpoint {number}")
        if not is_key(job_id) or not 0 < number < LARGEST_NUMBER:
            raise missing
        with translating(f"read checkpoint {number} of job {job_id}"):
            try:
                item = self._tables.checkpoints.get(job_id, number, consistent_read=True)
            except DoesNotExist as error:
                raise missing from error
        return read_checkpoint(item.body)

    def note_pruned(self, job_id: str, number: int, at: datetime) -> None:
        """Note that a checkpoint's objects are gone."""
        checkpoints = self._tables.checkpoints
        try:
            checkpoint = self.get_checkpoint(job_id, number)
        except NotFound:
            return
        if checkpoint.pruned_at is None:
            body = checkpoint.model_copy(update={"pruned_at": at}).model_dump_json()
            with translating(f"note that checkpoint {number} of job {job_id} is pruned"):
                checkpoints(job_id, number, body=body).save(condition=checkpoints.number.exists())

    def _get_item(self, job_id: str) -> JobItem:
        missing = NotFound(f"there is no job {cut(job_id)}")
        if not is_key(job_id):
            raise missing
        with translating(f"read job {job_id}"):
            try:
                return self._tables.jobs.get(job_id, consistent_read=True)
            except DoesNotExist as error:
                raise missing from error

    def _attempts(self, ids: Sequence[str], *, lenient: bool = False) -> dict[str, Attempt]:
        wanted = [i for i in dict.fromkeys(ids) if is_key(i)]
        if not wanted:
            return {}
        with translating(f"read instances {', '.join(wanted)}"):
            items = {i.cedana_id: i for i in self._tables.instances.batch_get(wanted, consistent_read=True)}
        return {i: read_attempt(items[i], lenient=lenient) for i in wanted if i in items}

    def _update(self, item: JobItem | InstanceItem, actions: Sequence[Action], condition: Condition) -> bool:
        """A plain update of an attribute or two; whether the condition held."""

        def once() -> bool:
            try:
                item.update(actions=list(actions), condition=condition)
            except UpdateError as error:
                if condition_failed(error):
                    return False
                raise
            return True

        return through_collisions(once, self._pause)

    def _register(self, attempts: Sequence[Attempt]) -> None:
        """See that the regions of these attempts are in the register before anything there is saved.

        The register makes the index of the living readable without a scan: its hash keys cannot be listed. It stands
        apart from the transaction so that jobs do not collide at it; a name too many there costs one empty query.
        """
        keys = {region_key(attempt) for attempt in attempts if not attempt.is_gone} - self._registered
        if not keys:
            return
        instances = self._tables.instances
        with translating("register a region"):
            through_collisions(lambda: instances(REGISTER).update(actions=[instances.regions.add(keys)]), self._pause)
        self._registered |= keys


def _index_key(position: Position) -> dict[str, dict[str, str]]:
    fields = {"owner": position.owner, "created_at": position.created_at, "job_id": position.job_id}
    return {name: {"S": value} for name, value in fields.items()}
