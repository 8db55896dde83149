"""The use cases behind what people read, and how they steer jobs."""

from collections.abc import Mapping

from spotferry.domain.ledger import Bucket
from spotferry.runtime.changes import Changes
from spotferry.runtime.wiring import utc_now, wiring
from spotferry.types.base import Json
from spotferry.usecases.begin_again import BeginAgain, Wish
from spotferry.usecases.read_costs import ReadCosts
from spotferry.usecases.read_jobs import ReadJobs
from spotferry.usecases.read_logs import ReadLogs
from spotferry.usecases.read_outputs import ReadOutputs
from spotferry.usecases.steer_job import SteerJob


class People(Changes):
    """What people may see and order."""

    @property
    def read_jobs(self) -> ReadJobs:
        """Jobs as people see them."""
        return ReadJobs(self._wiring.store, utc_now)

    @property
    def read_costs(self) -> ReadCosts:
        """The ledger."""
        settings = self._wiring.settings
        return ReadCosts(self._wiring.store, Bucket("aws", settings.region, settings.kept_for), utc_now)

    @property
    def read_logs(self) -> ReadLogs:
        """Logs."""
        return ReadLogs(self._wiring.store, self._wiring.objects, utc_now)

    @property
    def read_outputs(self) -> ReadOutputs:
        """Outputs."""
        return ReadOutputs(self._wiring.store, self._wiring.objects)

    def part(self, job_id: str, part: str, query: Mapping[str, str]) -> Json:
        """One part of what is known of a job, as the query asks for it.

        Raises:
            NotFound: there is no such job, or no such part.
            InvalidInput: the query is not what it should be.
        """
        if part == "logs":
            return self.read_logs(job_id, query.get("cursor", ""), follow=query.get("follow") == "true")
        return self.read_outputs(job_id) if part == "outputs" else self.read_jobs.part(job_id, part)

    @property
    def steer_job(self) -> SteerJob:
        """People's orders."""
        begin = BeginAgain(self._wiring.settings.deployment, self.change, self._wiring.objects)
        return SteerJob(self.change, begin)

    def steer(self, order: str, job_id: str, by: str, key: str, body: Json) -> Json:
        """An order to a job, with what the call's body says to it.

        Raises:
            ValidationError: the body is not what goes with a restore; no other order looks at it.
            SpotferryError: as `SteerJob`.
        """
        wish = Wish.model_validate(body if order == "restore" else {})
        return {"job": self.read_jobs.full(self.steer_job(order, job_id, by, key, wish))}


def people() -> People:
    """The function's own, over its own wiring."""
    return People(wiring())
