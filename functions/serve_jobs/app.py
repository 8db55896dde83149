"""API: read, list, cancel, checkpoint, retry and restore jobs; their logs, outputs, checkpoints, machines and costs."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.http import caller, idempotency_key, optional_json, query, resolver, whole_number
from spotferry.runtime.observability import logger, metrics
from spotferry.runtime.people import people
from spotferry.types.base import Json

app = resolver()


@app.get("/jobs")
def list_jobs() -> Json:
    """The caller's jobs, newest first."""
    return people().read_jobs.list(caller(app), whole_number(app, "limit", 50, 200), query(app).get("cursor"))


@app.get("/jobs/<job_id>")
def show_job(job_id: str) -> Json:
    """One job with all its machines and what they cost."""
    return people().read_jobs.show(job_id)


@app.get("/jobs/<job_id>/<part>")
def show_part(job_id: str, part: str) -> Json:
    """A job's log after a cursor, its outputs, timeline, machines or checkpoints."""
    return people().part(job_id, part, query(app))


@app.get("/costs")
def show_costs() -> Json:
    """What the caller's jobs cost, by job, project or label; or one job, machine by machine."""
    return people().read_costs.asked(caller(app), query(app), whole_number(app, "limit", 25, 100))


@app.post("/jobs/<job_id>/<order>")
def steer(job_id: str, order: str) -> Json:
    """Cancel, checkpoint, retry or restore."""
    return people().steer(order, job_id, caller(app), idempotency_key(app), optional_json(app))


@app.get("/instances")
def list_instances() -> Json:
    """All machines that are not known to be gone."""
    return people().read_jobs.living_instances()


@app.post("/instances/<instance_id>/destroy")
def destroy(instance_id: str) -> Json:
    """End one machine; its job goes on elsewhere."""
    return people().read_jobs.instance(people().steer_job.end_machine(instance_id, caller(app)))


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: Json, _context: LambdaContext) -> Json:
    """Entry point."""
    return app.resolve(event)
