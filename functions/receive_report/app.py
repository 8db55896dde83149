"""API for agents: hello, heartbeat, report, archives; checks their token itself."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.agents import agents
from spotferry.runtime.http import AGENT_BODY_LIMIT_BYTES, json_body, resolver
from spotferry.runtime.observability import logger, metrics
from spotferry.runtime.router import Response
from spotferry.types.base import Json
from spotferry.types.errors import NotFound
from spotferry.types.instance import Attempt
from spotferry.usecases.archive_calls import Addresses, Commit, MoreAddresses
from spotferry.usecases.hear_agent import LogChunk

app = resolver()


def _call(name: str) -> tuple[Attempt, Json]:
    body, who = json_body(app, AGENT_BODY_LIMIT_BYTES), app.current_event.headers.get("authorization", "")
    return agents().authenticate(who, body.get("epoch"), hello=name == "hello"), body


@app.get("/agent/v1/agent/<digest>")
def download(digest: str) -> Response[bytes]:
    """The agent itself, by its digest."""
    return Response(200, "application/zip", agents().download(digest))


@app.post("/agent/v1/<call>")
def hear(call: str) -> Json:
    """Hello, heartbeat, report, uploads."""
    attempt, body = _call(call)
    log = LogChunk.of(body.get("log"))
    match call:
        case "hello":
            return agents().greet_agent(attempt, body.get("machine"))
        case "heartbeat":
            return agents().hear_agent.heartbeat(attempt, str(body.get("phase", "")), log)
        case "report":
            said = str(body.get("event", "")), body.get("data") or {}, log, body.get("report")
            return agents().hear_agent.report(attempt, *said)
        case "uploads":
            return agents().take_archive.addresses(attempt, Addresses.model_validate(body))
    raise NotFound(f"agents have no call {call}")


@app.post("/agent/v1/uploads/<call>")
def archive(call: str) -> Json:
    """Where the next chunks go; the commit that makes an archive count."""
    (attempt, body), archives = _call(call), agents().take_archive
    if call == "addresses":
        return archives.more_addresses(attempt, MoreAddresses.model_validate(body))
    return archives.commit(attempt, Commit.model_validate(body))


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: Json, _context: LambdaContext) -> Json:
    """Entry point."""
    return app.resolve(event)
