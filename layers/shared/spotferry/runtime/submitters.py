"""The use cases behind what people hand in: apart from the rest, because they start cold most often."""

from spotferry.runtime.input_probe import WebProbe
from spotferry.runtime.refresh_trigger import RefreshFunction
from spotferry.runtime.wiring import Wiring, utc_now, wiring
from spotferry.usecases.inputs import CheckInputs
from spotferry.usecases.plan_job import PlanJob
from spotferry.usecases.read_catalogue import ReadCatalogue
from spotferry.usecases.read_jobs import ReadJobs
from spotferry.usecases.request_upload import RequestUpload
from spotferry.usecases.submit_job import SubmitJob


class Submitters:
    """What people may hand in and ask beforehand."""

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
    def read_catalogue(self) -> ReadCatalogue:
        """The catalogue in force, and orders for a newer one."""
        settings = self._wiring.settings
        trigger = RefreshFunction(settings.need("refresh_function"), self._wiring.client("lambda"))
        return ReadCatalogue(self._wiring.catalogues, trigger, utc_now)


def submitters() -> Submitters:
    """The function's own, over its own wiring."""
    return Submitters(wiring())
