"""The HTTP API's routes, and who may take them."""

import json
from collections.abc import Mapping
from typing import Any

from local.packaging import ROOT
from local.template import Template

USER_ROUTES = {
    "submit_job": {"POST /uploads", "POST /plan", "POST /jobs", "GET /catalog", "POST /catalog/refresh"},
    "serve_jobs": {
        "GET /jobs",
        "GET /jobs/{job_id}",
        "GET /jobs/{job_id}/timeline",
        "GET /jobs/{job_id}/instances",
        "GET /jobs/{job_id}/logs",
        "GET /jobs/{job_id}/outputs",
        "GET /jobs/{job_id}/checkpoints",
        "POST /jobs/{job_id}/cancel",
        "POST /jobs/{job_id}/retry",
        "POST /jobs/{job_id}/checkpoint",
        "POST /jobs/{job_id}/restore",
        "GET /costs",
        "GET /instances",
        "POST /instances/{instance_id}/destroy",
    },
}
AGENT_ROUTES = {
    "receive_report": {
        "POST /agent/v1/hello",
        "POST /agent/v1/heartbeat",
        "POST /agent/v1/report",
        "POST /agent/v1/uploads",
        "POST /agent/v1/uploads/addresses",
        "POST /agent/v1/uploads/commit",
        "GET /agent/v1/agent/{digest}",
    },
}
CLOUD_ROUTES = {
    "handle_interruption": {"POST /events/gcp", "POST /events/azure", "OPTIONS /events/azure"},
}
INTEGRATIONS = {
    "SubmitJobIntegration": "submit_job",
    "ServeJobsIntegration": "serve_jobs",
    "ReceiveReportIntegration": "receive_report",
    "HandleInterruptionIntegration": "handle_interruption",
}


def routes(template: Template) -> list[Mapping[str, Any]]:
    """The properties of all routes."""
    return [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::ApiGatewayV2::Route"]


def function_of(route: Mapping[str, Any]) -> str:
    """The function that a route leads to."""
    return INTEGRATIONS[route["Target"]["Fn::Sub"].removeprefix("integrations/${").removesuffix("}")]


def test_the_api_has_these_routes_and_no_others(template: Template) -> None:
    """Every route of the API leads to the function that serves it, once."""
    found: dict[str, list[str]] = {name: [] for name in INTEGRATIONS.values()}
    for route in routes(template):
        found[function_of(route)].append(route["RouteKey"])
    assert {name: sorted(keys) for name, keys in found.items()} == {
        name: sorted(keys) for name, keys in {**USER_ROUTES, **AGENT_ROUTES, **CLOUD_ROUTES}.items()
    }


def test_users_are_authorized_and_agents_bring_tokens(template: Template) -> None:
    """A user's route takes the deployment's kind of authorization; an agent's has none, since its function checks."""
    for route in routes(template):
        if function_of(route) == "receive_report":
            assert route["AuthorizationType"] == "NONE"
        elif function_of(route) != "handle_interruption":
            assert route["AuthorizationType"] == {"Ref": "Auth"}
            assert route["AuthorizerId"]["Fn::If"][0] == "UsesJwt"


def test_clouds_come_in_only_where_somebody_may(template: Template) -> None:
    """Without a relay's account or a code there is no route; the relay's token is checked wherever anybody's is."""
    resources = template["Resources"]
    gcp, azure, greeting = (resources[f"{name}Route"] for name in ("HearGcp", "HearAzure", "GreetAzure"))
    assert (gcp["Condition"], azure["Condition"], greeting["Condition"]) == ("HearsGcp", "HearsAzure", "HearsAzure")
    assert gcp["Properties"]["AuthorizationType"] == {"Fn::If": ["IsOpen", "NONE", "JWT"]}
    assert gcp["Properties"]["AuthorizerId"]["Fn::If"][:2] == ["ChecksRelay", {"Ref": "RelayAuthorizer"}]
    for route in (azure, greeting):
        assert route["Properties"]["AuthorizationType"] == "NONE"
    checked = resources["RelayAuthorizer"]["Properties"]["JwtConfiguration"]
    assert checked["Issuer"] == "https://accounts.google.com"
    (audience,) = checked["Audience"]
    broker_url = resources["CreateInstanceFunction"]["Properties"]["Environment"]["Variables"]["BROKER_URL"]
    assert audience == {"Fn::If": ["HasRelayAudience", {"Ref": "GcpRelayAudience"}, broker_url]}
    for name in ("GcpRelayAccount", "AzureEventsCodeSha256"):
        assert template["Parameters"][name]["Default"] == ""


def test_each_function_behind_the_api_may_be_called_by_it_alone(template: Template) -> None:
    """The permission to invoke names this API."""
    permissions = [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::Lambda::Permission"]
    assert len(permissions) == len(INTEGRATIONS)
    assert all("${HttpApi}" in permission["SourceArn"]["Fn::Sub"] for permission in permissions)


def test_every_route_has_an_event(template: Template) -> None:
    """There is a sample event for each route of the API."""
    samples = set()
    for name in INTEGRATIONS.values():
        for path in (ROOT / "events" / name).glob("*.json"):
            samples.add(json.loads(path.read_text(encoding="utf-8")).get("routeKey"))
    samples.discard(None)  # what comes from the bus
    assert samples == {route["RouteKey"] for route in routes(template)}
