"""Attempts in DynamoDB."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from pynamodb.exceptions import DoesNotExist

from spotferry.store.dynamo_jobs import REGISTER, DynamoJobs
from spotferry.store.failures import translating
from spotferry.store.keys import allocated_key, fits, is_key, sortable
from spotferry.store.models import InstanceItem
from spotferry.store.records import read_attempt
from spotferry.types.errors import NotFound
from spotferry.types.instance import Attempt
from spotferry.types.words import cut


class DynamoAttempts(DynamoJobs):
    """The store with its reads and plain updates of attempts; `dynamo.DynamoStore` is the whole of it."""

    def get_attempt(self, instance_id: str) -> Attempt:
        """The attempt."""
        item = self._instance(instance_id) if is_key(instance_id) else None
        if item is None:
            raise NotFound(f"there is no instance {cut(instance_id)}")
        return read_attempt(item)

    def find_attempt(self, provider: str, region: str, allocated_id: str) -> Attempt | None:
        """The attempt whose machine has this id of the cloud's, by two consistent reads."""
        key = allocated_key(provider, region, allocated_id)
        signpost = self._instance(key) if fits(key) else None
        return self.get_attempt(signpost.points_to) if signpost is not None else None

    def attempts_of(self, job_id: str) -> Sequence[Attempt]:
        """All attempts of the job, oldest first."""
        ids = [reference.instance_id for reference in self.get_job(job_id).get_instance_ids()]
        return list(self._attempts(ids, lenient=True).values())

    def living_attempts(self) -> Iterator[str]:
        """Ids of the attempts whose machine is not known to be gone, region by region."""
        register = self._instance(REGISTER)
        for key in sorted(register.regions or ()) if register is not None else ():
            with translating(f"list the living instances of {key}"):
                for item in self._tables.instances.living_index.query(key):
                    yield item.cedana_id

    def bind_agent(self, instance_id: str, key_sha256: str) -> bool:
        """Bind the digest of the agent's key if none is bound, by one conditional update."""
        if not is_key(instance_id):
            return False
        instances = self._tables.instances
        mine = instances.agent_key_sha256.does_not_exist() | (instances.agent_key_sha256 == key_sha256)
        with translating(f"bind the agent of instance {instance_id}"):
            action = instances.agent_key_sha256.set(key_sha256)
            return self._update(instances(instance_id), [action], instances.job_id.exists() & mine)

    def touch_attempt(self, instance_id: str, seen: datetime) -> None:
        """Note the agent's last word and count it; an earlier word than the one that is stored is counted alone."""
        if not is_key(instance_id):
            return
        instances, text = self._tables.instances, sortable(seen)
        item, known, one_more = instances(instance_id), instances.job_id.exists(), instances.heartbeats.add(1)
        later = instances.last_seen.does_not_exist() | (instances.last_seen < text)
        with translating(f"note the last word of instance {instance_id}"):
            if not self._update(item, [instances.last_seen.set(text), one_more], known & later):
                self._update(item, [one_more], known)

    def _instance(self, key: str) -> InstanceItem | None:
        with translating(f"read instance {key}"):
            try:
                return self._tables.instances.get(key, consistent_read=True)
            except DoesNotExist:
                return None
