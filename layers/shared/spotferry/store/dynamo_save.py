"""One save as one transaction."""

from collections.abc import Callable, Sequence

from pynamodb.exceptions import PynamoDBException
from pynamodb.transactions import TransactWrite

from spotferry.store.changes import Changes
from spotferry.store.failures import through_collisions, translated
from spotferry.store.keys import allocated_key
from spotferry.store.models import Tables
from spotferry.store.records import attempt_actions, attempt_item, job_actions, job_item
from spotferry.types.job import Checkpoint, Job, TimelineEntry


def write_new(
    tables: Tables, job: Job, entry: TimelineEntry, checkpoints: Sequence[Checkpoint], pause: Callable[[float], None]
) -> None:
    """Write a new job, its first entry and the checkpoints it begins with.

    Raises:
        Conflict: there is such a job.
        NotYet: the database is busy or away.
    """

    def add(transaction: TransactWrite) -> None:
        transaction.save(job_item(tables.jobs, job, entry.at), condition=tables.jobs.job_id.does_not_exist())
        _add_entry(tables, transaction, entry)
        for point in checkpoints:
            _add_checkpoint(tables, transaction, job.job_id, point)

    _commit(tables, add, f"create job {job.job_id}", pause)


def write_changes(tables: Tables, changes: Changes, pause: Callable[[float], None]) -> None:
    """Write what a decision changed, if the job still has the revision that was loaded.

    Raises:
        Conflict: somebody saved first.
        NotYet: the database is busy or away; the save may have been made.
    """
    job = changes.job

    def add(transaction: TransactWrite) -> None:
        transaction.update(
            tables.jobs(job.job_id),
            actions=job_actions(tables.jobs, changes.was, job, changes.entry.at),
            condition=tables.jobs.revision == changes.revision,
        )
        _add_attempts(tables, transaction, changes)
        _add_entry(tables, transaction, changes.entry)
        if changes.checkpoint is not None:
            _add_checkpoint(tables, transaction, job.job_id, changes.checkpoint)

    _commit(tables, add, f"save job {job.job_id} at revision {changes.revision}", pause)


def _add_attempts(tables: Tables, transaction: TransactWrite, changes: Changes) -> None:
    instances = tables.instances
    for attempt in changes.created:
        transaction.save(attempt_item(instances, attempt), condition=instances.cedana_id.does_not_exist())
    for attempt in changes.updated:
        actions = attempt_actions(instances, attempt)
        transaction.update(instances(attempt.cedana_id), actions=actions, condition=instances.cedana_id.exists())
    for attempt in changes.allocated:
        key = allocated_key(attempt.provider, attempt.region, attempt.allocated_id)
        transaction.save(instances(key, points_to=attempt.cedana_id))


def _add_checkpoint(tables: Tables, transaction: TransactWrite, job_id: str, point: Checkpoint) -> None:
    item = tables.checkpoints(job_id, point.number, body=point.model_dump_json())
    transaction.save(item, condition=tables.checkpoints.number.does_not_exist())


def _add_entry(tables: Tables, transaction: TransactWrite, entry: TimelineEntry) -> None:
    item = tables.timeline(entry.job_id, entry.revision, body=entry.model_dump_json())
    transaction.save(item, condition=tables.timeline.revision.does_not_exist())


def _commit(tables: Tables, add: Callable[[TransactWrite], None], what: str, pause: Callable[[float], None]) -> None:
    def once() -> None:
        with TransactWrite(connection=tables.connection) as transaction:
            add(transaction)

    try:
        through_collisions(once, pause)
    except PynamoDBException as error:
        raise translated(error, what) from error
