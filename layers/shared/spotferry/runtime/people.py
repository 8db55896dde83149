"""The use cases behind the user API."""

from spotferry.runtime.wiring import Wiring, utc_now, wiring
from spotferry.usecases.plan_job import PlanJob
from spotferry.usecases.read_jobs import ReadJobs
from spotferry.usecases.read_logs import ReadLogs
from spotferry.usecases.read_outputs import ReadOutputs
from spotferry.usecases.request_upload import RequestUpload
from spotferry.usecases.steer_job import SteerJob
from spotferry.usecases.submit_job import SubmitJob


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
        )

    @property
    def request_upload(self) -> RequestUpload:
        """Work directories."""
        return RequestUpload(self._wiring.objects)

    @property
    def read_jobs(self) -> ReadJobs:
        """Jobs as people see them."""
        return ReadJobs(self._wiring.store, utc_now)

    @property
    def read_logs(self) -> ReadLogs:
        """Logs."""
        return ReadLogs(self._wiring.store, self._wiring.objects, utc_now)

    @property
    def read_outputs(self) -> ReadOutputs:
        """Outputs."""
        return ReadOutputs(self._wiring.store, self._wiring.objects)

    @property
    def steer_job(self) -> SteerJob:
        """People's orders."""
        return SteerJob(self._wiring.change)


def people() -> People:
    """The function's own, over its own wiring."""
    return People(wiring())
