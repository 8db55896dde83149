"""API: a job file becomes a job; a plan without a job; upload addresses; the catalogue that plans go by."""

from http import HTTPStatus

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.http import body_text, caller, idempotency_key, json_body, resolver
from spotferry.runtime.observability import count, logger, metrics
from spotferry.runtime.router import Response
from spotferry.runtime.submissions import read_submission
from spotferry.runtime.submitters import submitters
from spotferry.types.base import Json
from spotferry.types.job import Upload

app = resolver()


@app.post("/uploads")
def request_upload() -> Json:
    """Where a packed work directory goes."""
    return submitters().request_upload(Upload.model_validate(json_body(app)))


@app.post("/plan")
def plan_job() -> Json:
    """What a job file would get now."""
    plan = submitters().plan_job(read_submission(body_text(app), caller(app)).spec)
    return plan.to_json()


@app.post("/jobs")
def submit_job() -> Response[Json]:
    """Make a job; the same Idempotency-Key and body is the same job."""
    submitted = submitters().submit_job(read_submission(body_text(app), caller(app), idempotency_key(app)))
    if submitted.is_new:
        count("JobsAccepted")
    status = HTTPStatus.CREATED if submitted.is_new else HTTPStatus.OK
    answer = {"job": submitters().read_jobs.full(submitted.job), "plan": submitted.plan.to_json()}
    return Response(status.value, "application/json", answer)


@app.get("/catalog")
def show_catalogue() -> Json:
    """The catalogue in force: offers and age of prices by region."""
    return submitters().read_catalogue()


@app.post("/catalog/refresh")
def refresh_catalogue() -> Response[Json]:
    """Have prices read anew soon."""
    return Response(HTTPStatus.ACCEPTED.value, "application/json", submitters().read_catalogue.refresh(caller(app)))


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: Json, _context: LambdaContext) -> Json:
    """Entry point."""
    return app.resolve(event)
