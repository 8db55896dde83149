"""The use cases behind the user API."""

from collections.abc import Mapping

from spotferry.domain.ledger import Bucket
from spotferry.runtime.input_probe import WebProbe
from spotferry.runtime.refresh_trigger import RefreshFunction
from spotferry.runtime.wiring import Wiring, utc_now, wiring
from spotferry.usecases.inputs import CheckInputs
from spotferry.usecases.plan_job import PlanJob
from spotferry.usecases.read_catalogue import ReadCatalogue
from spotferry.usecases.read_costs import ReadCosts
from spotferry.usecases.read_jobs import ReadJobs
from spotferry.usecases.read_logs import ReadLogs
from spotferry.usecases.read_outputs import ReadOutputs
from spotferry.usecases.request_upload import RequestUpload
from spotferry.usecases.steer_job import SteerJob
from spotferry.usecases.submit_job import SubmitJob
from spotferry.usecases.word import Json


class People:
    """What people may ask for."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    @property
    def plan_job(self) -> PlanJob:
        """Plans without jobs."""
        return self._wiring.plan_job

    @property
    def submit_job(self) -> SubmitJob:
        """Submissions."""
        return SubmitJob(
            deployment=self._wiring.settings.deployment,
            bucket=self._wiring.settings.need("bucket"),
            store=self._wiring.store,
            objects=self._wiring.objects,
            queue=self._wiring.queue,
            plan_job=self._wiring.plan_job,
            clock=utc_now,
            check_inputs=CheckInputs(self._wiring.settings.need("bucket"), self._wiring.objects, WebProbe()),
        )

    @property
    def request_upload(self) -> RequestUpload:
        """Work directories."""
        return RequestUpload(self._wiring.objects, utc_now, self._wiring.settings.kept_for)

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
    def read_catalogue(self) -> ReadCatalogue:
        """The catalogue in force, and orders for a newer one."""
        settings = self._wiring.settings
        trigger = RefreshFunction(settings.need("refresh_function"), self._wiring.client("lambda"))
        return ReadCatalogue(self._wiring.catalogues, trigger, utc_now)

    @property
    def steer_job(self) -> SteerJob:
        """People's orders."""
        return SteerJob(self._wiring.change, self._wiring.objects)


def people() -> People:
    """The function's own, over its own wiring."""
    return People(wiring())
