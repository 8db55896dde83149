"""A deployment in memory: the broker's own services by moto, the clouds by a fake, the functions loaded by path."""

import base64
import hashlib
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from pynamodb.models import Model

from spotferry.catalog.source import publish
from spotferry.runtime.aws_clients import client
from spotferry.runtime.wiring import Wiring
from spotferry.store.models import TableNames, bind
from spotferry.types import Attempt, Job, Offer
from tests.fake_cloud import FakeCloud
from tests.fake_prices import FakePricing, FakeSources
from tests.fakes import OFFERS, FakeObjects

Json = dict[str, Any]  # Any: JSON
ROOT = Path(__file__).parents[2]
REGION = "us-east-1"
TABLES = TableNames("jobs", "instances", "checkpoints", "timeline", "bans")
BUCKET = "spotferry-test"
KEY = "aa" * 32
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "DEPLOYMENT": "test",
    "PARAMETER_PREFIX": "/spotferry/test",
    "JOBS_TABLE": TABLES.jobs,
    "INSTANCES_TABLE": TABLES.instances,
    "CHECKPOINTS_TABLE": TABLES.checkpoints,
    "TIMELINE_TABLE": TABLES.timeline,
    "BANS_TABLE": TABLES.bans,
    "BUCKET": BUCKET,
    "BROKER_URL": "https://broker.example",
    "REFRESH_FUNCTION": "refresh:live",
    "AUTH": "AWS_IAM",
    "GCP_RELAY_ACCOUNT": "relay@demo-project.iam.gserviceaccount.com",
    "AZURE_EVENTS_CODE_SHA256": hashlib.sha256(b"open-sesame").hexdigest(),
    "POWERTOOLS_METRICS_NAMESPACE": "Spotferry",
}
JOB_FILE = "name: count\ntask:\n  run: ./count\n"


class Context(LambdaContext):
    """What Lambda tells a function about itself."""

    def __init__(self) -> None:
        self._function_name = "spotferry"
        self._memory_limit_in_mb = 512
        self._invoked_function_arn = f"arn:aws:lambda:{REGION}:123456789012:function:spotferry"
        self._aws_request_id = "00000000-0000-0000-0000-000000000000"


@cache
def function(name: str) -> ModuleType:
    """The entry point of a function, loaded by its path as Lambda does."""
    spec = importlib.util.spec_from_file_location(f"function_{name}", ROOT / "functions" / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def event(name: str, case: str) -> Json:
    """One of the events that stand in the repository."""
    loaded: Json = json.loads((ROOT / "events" / name / f"{case}.json").read_text())
    return loaded


@dataclass
class Answer:
    """What a function answers over HTTP."""

    status: int
    headers: Mapping[str, str]
    raw: str

    @property
    def json(self) -> Json:
        """The body."""
        loaded: Json = json.loads(self.raw)
        return loaded

    @property
    def fields(self) -> list[str]:
        """The fields that a problem document names."""
        return [error["field"] for error in self.json["errors"]]


class Deployment:
    """Tables, queues, bucket, secret and regions of one test, and the functions over them.

    Args:
        wiring: the wiring that the functions use.
    """

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.cloud = FakeCloud()
        self.prices = FakeSources(aws=FakePricing(_by_region(OFFERS)))
        self.refreshes: list[Json] = []

    def order_refresh(self, FunctionName: str, InvocationType: str, Payload: bytes) -> Json:  # noqa: N803 (the SDK's)
        """What the Lambda client does with an order to refresh prices."""
        assert (FunctionName, InvocationType) == (ENVIRONMENT["REFRESH_FUNCTION"], "Event")
        self.refreshes.append(json.loads(Payload))
        return {"StatusCode": 202}

    def invoke(self, name: str, what: Json) -> Any:  # Any: whatever the trigger expects
        """The function's answer to an event."""
        return function(name).handler(what, Context())

    def answer(self, name: str, what: Json) -> Answer:
        """The function's answer to an event of the HTTP API."""
        said = self.invoke(name, what)
        headers = {key.lower(): value for key, value in (said.get("headers") or {}).items()}
        body = said.get("body") or ""
        return Answer(said["statusCode"], headers, body)

    def call(
        self,
        name: str,
        route: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """A call of the HTTP API; a body that is no text goes as JSON."""
        method, path = route.split()
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        return self.answer(name, http_event(method, path, text, headers or {}, query or {}))

    def submit(self, body: object = JOB_FILE, key: str | None = None) -> Answer:
        """POST /jobs."""
        return self.call("submit_job", "POST /jobs", body, {} if key is None else {"idempotency-key": key})

    def submitted(self) -> str:
        """The id of a job that was accepted."""
        return str(self.submit().json["job"]["job_id"])

    def launched(self) -> tuple[str, Attempt]:
        """A job whose machine was made."""
        job_id = self.submitted()
        self.invoke("create_instance", sqs_event({"kind": "place_job", "job_id": job_id}))
        return job_id, self.attempts(job_id)[-1]

    def running(self) -> tuple[str, Attempt]:
        """A job whose task runs."""
        job_id, attempt = self.launched()
        for call, body in (
            ("hello", {}),
            ("report", {"event": "setup_finished", "data": {"seconds": 1}}),
            ("report", {"event": "task_started", "data": {"restored_from": None}}),
        ):
            assert self.agent(attempt, call, body).status == 200
        return job_id, attempt

    def agent(self, attempt: Attempt, call: str, body: object, *, key: str = KEY, token: str = "") -> Answer:
        """A call of an agent."""
        token = token or self.wiring.token_of(attempt.cedana_id, attempt.epoch)
        headers = {"authorization": f"Bearer {attempt.cedana_id}.{token}.{key}"}
        said = {"protocol": 1, "epoch": attempt.epoch, **body} if isinstance(body, dict) else body
        return self.call("receive_report", f"POST /agent/v1/{call}", said, headers)

    def job(self, job_id: str) -> Job:
        """The job as it is stored."""
        return self.wiring.store.get_job(job_id)

    def attempts(self, job_id: str) -> list[Attempt]:
        """The job's attempts."""
        return list(self.wiring.store.attempts_of(job_id))

    def queued(self, queue: str) -> list[Json]:
        """What waits in a queue, at once or for a time."""
        attributes = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"]
        sqs = client("sqs", REGION)
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        said = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=attributes)["Attributes"]
        if not int(said[attributes[0]]):
            return [{}] * int(said[attributes[1]])
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0).get("Messages", ())
        return [json.loads(message["Body"]) for message in found]

    def written(self) -> tuple[int, ...]:
        """How much stands in tables, bucket and queues: what bad input must not change."""
        counts = [sum(1 for _ in table.scan()) for table in models()]
        objects = client("s3", REGION).list_objects_v2(Bucket=BUCKET).get("KeyCount", 0)
        return (*counts, objects, len(self.queued("placement")), len(self.queued("destroy")))


def _by_region(offers: Iterable[Offer]) -> Mapping[str, Sequence[Offer]]:
    found: dict[str, list[Offer]] = {}
    for offer in offers:
        found.setdefault(offer.region, []).append(offer)
    return found


def create_services(environment: dict[str, str]) -> None:
    """Make what the template makes, and tell the environment where it is."""
    for model in models():
        model.create_table(wait=False, billing_mode="PAY_PER_REQUEST")
    client("s3", REGION).create_bucket(Bucket=BUCKET)
    for key, body in catalogue().items():
        client("s3", REGION).put_object(Bucket=BUCKET, Key=key, Body=body)
    for queue in ("placement", "destroy"):
        environment[f"{queue.upper()}_QUEUE_URL"] = client("sqs", REGION).create_queue(QueueName=queue)["QueueUrl"]
    secret = client("secretsmanager", REGION).create_secret(Name="tokens", SecretString="s" * 32)
    environment["TOKEN_SECRET_ARN"] = secret["ARN"]
    for region in sorted({offer.region for offer in OFFERS}):
        settings = json.dumps({"provider": "aws", "region": region})
        name = f"/spotferry/test/regions/aws/{region}"
        client("ssm", REGION).put_parameter(Name=name, Value=settings, Type="String")


@cache
def models() -> tuple[type[Model], ...]:
    """The tables' models, over one connection."""
    tables = bind(TABLES, REGION, None)
    return (tables.jobs, tables.instances, tables.checkpoints, tables.timeline, tables.bans)


@cache
def catalogue() -> Mapping[str, bytes]:
    """The objects of a catalogue of the fakes' offers."""
    objects = FakeObjects()
    publish(objects, OFFERS, datetime(2026, 5, 4, tzinfo=UTC))
    return dict(objects.stored)


def sqs_event(*bodies: object) -> Json:
    """Messages as SQS hands them over; a body that is no text goes as JSON."""
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "body": body if isinstance(body, str) else json.dumps(body),
                "eventSource": "aws:sqs",
            }
            for number, body in enumerate(bodies)
        ]
    }


def http_event(method: str, path: str, body: str | None, headers: Mapping[str, str], query: Mapping[str, str]) -> Json:
    """A call as the HTTP API hands it over."""
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "&".join(f"{name}={value}" for name, value in query.items()),
        "queryStringParameters": dict(query) or None,
        "headers": dict(headers),
        "requestContext": {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "r"},
        "body": body,
        "isBase64Encoded": False,
    }


def as_base64(what: Json) -> Json:
    """The same call with its body encoded, as the API does with some content types."""
    return {**what, "body": base64.b64encode(what["body"].encode()).decode(), "isBase64Encoded": True}
