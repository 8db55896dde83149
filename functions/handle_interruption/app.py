"""EventBridge, the relay of Google Cloud and Event Grid: notices and state changes from any cloud."""

from functools import partial

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime import webhooks
from spotferry.runtime.http import resolver
from spotferry.runtime.machines import machines
from spotferry.runtime.observability import count, logger, metrics
from spotferry.runtime.router import Response
from spotferry.runtime.wiring import wiring
from spotferry.types.base import Json
from spotferry.types.errors import InvalidInput
from spotferry.usecases.handle_interruption import Heard

app = resolver()


def hear(envelope: Json, cloud: str = "") -> None:
    """Handle one event; one about a machine that nobody knows comes back once, by the placement queue."""
    if Heard.UNKNOWN in machines().handle_interruption_of(cloud)(envelope):
        count("UnknownEvents")
        wiring().queue.hear_again(envelope)


@app.post("/events/gcp")
def hear_gcp() -> Response[str]:
    """What our relay saw in Google Cloud's audit log."""
    webhooks.hear_all([webhooks.relayed_event(app, wiring().settings)], partial(hear, cloud="gcp"))
    return Response(204, "application/json", "")


@app.post("/events/azure")
def hear_azure() -> Response[str] | Json:
    """What Event Grid tells of virtual machines, and its question whether it may."""
    events = webhooks.grid_events(app, wiring().settings)
    if code := webhooks.validation_code(events):
        return {"validationResponse": code}
    webhooks.hear_all(events, partial(hear, cloud="azure"))
    return Response(204, "application/json", "")


@app.options("/events/azure")
def greet_azure() -> Response[str]:
    """Event Grid's question whether it may send CloudEvents."""
    return webhooks.greeting(app, wiring().settings)


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: Json, _context: LambdaContext) -> Json | None:
    """Entry point."""
    if "routeKey" in event:
        return app.resolve(event)
    try:
        hear(event)
    except InvalidInput as error:
        webhooks.set_aside(error, event)
    return None
