"""The template deployed into the emulator with policies enforced, each function replaced by a probe."""

import json
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.deploy import STACK_NAME, DeployError, api_url, client, deploy, set_up_regions
from local.packaging import ROOT
from local.services import Service, clean_environment, free_port

FUNCTIONS = (
    "submit_job",
    "serve_jobs",
    "create_instance",
    "destroy_instance",
    "handle_interruption",
    "poll_status",
    "receive_report",
    "refresh_prices",
)
DEADLINE_SECONDS = 20
DENIED = {"AccessDenied", "AccessDeniedException", "403"}


@dataclass(frozen=True)
class Deployed:
    """The emulator's address and the stack's outputs."""

    endpoint: str
    outputs: Mapping[str, str]

    def invoke(self, function: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a function under its own role; its result."""
        logical_id = "".join(word.capitalize() for word in function.split("_")) + "Function"
        cloudformation = client("cloudformation", self.endpoint)
        resource = cloudformation.describe_stack_resource(StackName=STACK_NAME, LogicalResourceId=logical_id)
        answer = client("lambda", self.endpoint).invoke(
            FunctionName=resource["StackResourceDetail"]["PhysicalResourceId"],
            Qualifier="live",
            Payload=json.dumps(event).encode(),
        )
        result: Mapping[str, Any] = json.loads(answer["Payload"].read())
        return result

    def log(self, function: str) -> str:
        """All that a function printed so far."""
        events = client("logs", self.endpoint).filter_log_events(logGroupName=f"/spotferry/local/{function}")["events"]
        return "\n".join(event["message"] for event in events)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """The template with probes for functions, in an emulator that checks policies."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "template.yaml", tree)
    package = tree / "layers" / "shared" / "spotferry"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in FUNCTIONS:
        (tree / "functions" / name).mkdir(parents=True)
        shutil.copy(Path(__file__).parent / "probe.py", tree / "functions" / name / "app.py")
    folder = tmp_path_factory.mktemp("emulator")
    service = Service("emulator", folder)
    endpoint = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "local.emulator", "--auth", "--port", str(port), "--state-dir", str(folder)]
    try:
        service.start(command, clean_environment(folder), tied=True)
        service.wait_until_it_answers(f"{endpoint}/_ministack/health")
        outputs = deploy(endpoint, root=tree)
        set_up_regions(endpoint, ["us-west-2"])
        yield Deployed(endpoint, outputs)
    finally:
        service.end()


def call(service: str, operation: str, **arguments: object) -> Mapping[str, object]:
    """A call for a probe to make; "$NAME" in an argument is the probe's own variable."""
    return {"service": service, "operation": operation, "arguments": arguments}


READ_JOB = call("dynamodb", "get_item", TableName="$JOBS_TABLE", Key={"job_id": {"S": "x"}})
WRITE_JOB = call("dynamodb", "put_item", TableName="$JOBS_TABLE", Item={"job_id": {"S": "x"}})
DELETE_JOB = call("dynamodb", "delete_item", TableName="$JOBS_TABLE", Key={"job_id": {"S": "x"}})
SCAN_JOBS = call("dynamodb", "scan", TableName="$JOBS_TABLE")
PLACE = call("sqs", "send_message", QueueUrl="$PLACEMENT_QUEUE_URL", MessageBody="{}", DelaySeconds=900)
BATCH = [{"Id": "1", "MessageBody": "{}", "DelaySeconds": 900}]
DESTROY = call("sqs", "send_message_batch", QueueUrl="$DESTROY_QUEUE_URL", Entries=BATCH)
READ_REGIONS = call("ssm", "get_parameters_by_path", Path="$PARAMETER_PREFIX/regions/", Recursive=True)
READ_IMAGE = call("ssm", "get_parameter", Name="/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64")
READ_SECRETS = call("ssm", "get_parameters", Names=["$PARAMETER_PREFIX/secrets/A", "$PARAMETER_PREFIX/secrets/B"])
READ_ACROSS = call("ssm", "get_parameters", Names=["$PARAMETER_PREFIX/secrets/A", "$PARAMETER_PREFIX/regions/x"])
READ_CLOUD_KEY = call("ssm", "get_parameters", Names=["$PARAMETER_PREFIX/clouds/paperspace/api-key"])
READ_TOKEN_KEY = call("secretsmanager", "get_secret_value", SecretId="$TOKEN_SECRET_ARN")
WRITE_LOG = call("s3", "put_object", Bucket="$BUCKET", Key="logs/j/1", Body="x")
WRITE_UPLOAD = call("s3", "put_object", Bucket="$BUCKET", Key="uploads/x", Body="x")
WRITE_AGENT = call("s3", "put_object", Bucket="$BUCKET", Key="agent/x", Body="x")
READ_CATALOGUE = call("s3", "list_objects_v2", Bucket="$BUCKET", Prefix="catalog/")
REFRESH = call("lambda", "invoke", FunctionName="$REFRESH_FUNCTION", InvocationType="Event", Payload="{}")
WRITE_CATALOGUE = call("s3", "put_object", Bucket="$BUCKET", Key="catalog/x", Body="x")


@pytest.mark.parametrize(
    ("function", "allowed", "denied"),
    [
        (
            "submit_job",
            [READ_JOB, WRITE_JOB, PLACE, DESTROY, READ_REGIONS, WRITE_UPLOAD, REFRESH],
            [SCAN_JOBS, DELETE_JOB, READ_IMAGE, WRITE_LOG, WRITE_CATALOGUE],
        ),
        ("serve_jobs", [READ_JOB, WRITE_JOB, PLACE, DESTROY], [SCAN_JOBS, READ_REGIONS, WRITE_UPLOAD, READ_SECRETS]),
        (
            "create_instance",
            [READ_JOB, WRITE_JOB, DESTROY, READ_REGIONS, READ_IMAGE, READ_TOKEN_KEY, READ_CLOUD_KEY, WRITE_AGENT],
            [SCAN_JOBS, DELETE_JOB, READ_SECRETS, WRITE_LOG, WRITE_CATALOGUE],
        ),
        (
            "destroy_instance",
            [READ_JOB, WRITE_JOB, DESTROY, READ_REGIONS, READ_CLOUD_KEY],
            [SCAN_JOBS, READ_IMAGE, READ_SECRETS],
        ),
        (
            "handle_interruption",
            [READ_JOB, WRITE_JOB, PLACE, DESTROY, READ_CLOUD_KEY],
            [SCAN_JOBS, READ_REGIONS, READ_SECRETS],
        ),
        (
            "poll_status",
            [READ_JOB, WRITE_JOB, PLACE, DESTROY, READ_REGIONS, READ_CLOUD_KEY],
            [SCAN_JOBS, READ_IMAGE, READ_SECRETS],
        ),
        (
            "receive_report",
            [READ_JOB, WRITE_JOB, DESTROY, READ_SECRETS, READ_TOKEN_KEY, WRITE_LOG],
            [SCAN_JOBS, READ_IMAGE, READ_ACROSS, READ_CLOUD_KEY, WRITE_UPLOAD, WRITE_AGENT],
        ),
        (
            "refresh_prices",
            [READ_REGIONS, READ_CATALOGUE, WRITE_CATALOGUE],
            [SCAN_JOBS, READ_JOB, READ_IMAGE, READ_SECRETS, READ_CLOUD_KEY, WRITE_UPLOAD, WRITE_LOG],
        ),
    ],
)
def test_roles_allow_the_work_and_deny_the_rest(
    deployed: Deployed, function: str, allowed: Sequence[Mapping[str, object]], denied: Sequence[Mapping[str, object]]
) -> None:
    """Under its own role each function gets what its work takes, and is refused what is others' work."""
    result = deployed.invoke(function, {"calls": [*allowed, *denied]})
    outcomes = result["outcomes"]
    assert outcomes[: len(allowed)] == ["ok"] * len(allowed)
    assert set(outcomes[len(allowed) :]) <= DENIED


@pytest.mark.parametrize(
    ("method", "path", "route", "service"),
    [
        ("POST", "/jobs", "POST /jobs", "submit_job"),
        ("GET", "/jobs?limit=2", "GET /jobs", "serve_jobs"),
        ("POST", "/jobs/j-1/cancel", "POST /jobs/{job_id}/cancel", "serve_jobs"),
        ("POST", "/agent/v1/uploads/commit", "POST /agent/v1/uploads/commit", "receive_report"),
        ("POST", "/events/gcp", "POST /events/gcp", "handle_interruption"),
        ("POST", "/events/azure?code=x", "POST /events/azure", "handle_interruption"),
    ],
)
def test_requests_reach_their_function(deployed: Deployed, method: str, path: str, route: str, service: str) -> None:
    """A request through the API's address arrives at the function of its route."""
    body = b"{}" if method == "POST" else None
    request = urllib.request.Request(api_url(deployed.endpoint) + path, method=method, data=body)
    with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as response:
        assert json.loads(response.read()) == {"route": route, "service": service}


def test_an_unknown_path_is_not_found(deployed: Deployed) -> None:
    """What is no route never reaches a function."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(api_url(deployed.endpoint) + "/nope", timeout=DEADLINE_SECONDS)
    refused.value.close()
    assert refused.value.code == 404


def wait_for(deployed: Deployed, function: str, text: str) -> bool:
    """Whether a function's log comes to hold the text before the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while text not in deployed.log(function):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2"])
def test_a_notice_of_any_launch_region_reaches_the_handler(deployed: Deployed, region: str) -> None:
    """EC2's events come to handle_interruption from the home region and from others, each with its own region on it."""
    detail = {"instance-id": f"i-{region}", "instance-action": "terminate"}
    entry = {"Source": "aws.ec2", "DetailType": "EC2 Spot Instance Interruption Warning", "Detail": json.dumps(detail)}
    answer = client("events", deployed.endpoint, region).put_events(Entries=[entry])
    assert answer["FailedEntryCount"] == 0
    assert wait_for(deployed, "handle_interruption", f"i-{region}")
    (line,) = [line for line in deployed.log("handle_interruption").splitlines() if f"i-{region}" in line]
    assert json.loads(line.partition("GOT ")[2])["region"] == region


def test_other_events_of_ec2_wake_nobody(deployed: Deployed) -> None:
    """A rule takes the kinds that matter: a machine that is pending does not."""
    events = client("events", deployed.endpoint)
    kind = "EC2 Instance State-change Notification"
    for state in ("pending", "stopped"):
        detail = {"instance-id": f"i-now-{state}", "state": state}
        events.put_events(Entries=[{"Source": "aws.ec2", "DetailType": kind, "Detail": json.dumps(detail)}])
    assert wait_for(deployed, "handle_interruption", "i-now-stopped")
    assert "i-now-pending" not in deployed.log("handle_interruption")


@pytest.mark.parametrize(
    ("output", "function"), [("PlacementQueueUrl", "create_instance"), ("DestroyQueueUrl", "destroy_instance")]
)
def test_messages_reach_their_function(deployed: Deployed, output: str, function: str) -> None:
    """A message on a queue arrives at the queue's function."""
    body = json.dumps({"marker": f"for {function}"})
    client("sqs", deployed.endpoint).send_message(QueueUrl=deployed.outputs[output], MessageBody=body)
    assert wait_for(deployed, function, f"for {function}")


def test_the_poll_is_scheduled(deployed: Deployed) -> None:
    """There is a rule that wakes poll_status every minute."""
    rules = client("events", deployed.endpoint).list_rules()["Rules"]
    assert [r["State"] for r in rules if r.get("ScheduleExpression") == "rate(1 minute)"] == ["ENABLED"]


def test_launch_regions_are_set_up_alike(deployed: Deployed) -> None:
    """The settings that the template writes for the home region and those of another region have one form."""
    path = "/spotferry/local/regions"
    found = client("ssm", deployed.endpoint).get_parameters_by_path(Path=path, Recursive=True)["Parameters"]
    settings = {p["Name"].rpartition("/")[2]: json.loads(p["Value"]) for p in found}
    assert set(settings) == {"us-east-1", "us-west-2"}
    for region, value in settings.items():
        assert value == {"provider": "aws", "region": region, "network": {}, "image_ids": {}}


def test_a_failed_deployment_names_resource_and_reason(emulator: str) -> None:
    """What CloudFormation could not make is said with its reason."""
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 999_999}}
    template = {"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"Broken": queue}, "Parameters": {}}
    with pytest.raises(DeployError, match=r"Broken: .*VisibilityTimeout"):
        deploy(emulator, template=template)
