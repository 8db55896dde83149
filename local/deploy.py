"""Deploys template.yaml into the local emulator, in about a second and without the SAM CLI."""

import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from local.packaging import ROOT, pack, pack_layer
from local.template import Template, localize, read_template

REGION = "us-east-1"
STACK_NAME = "spotferry"
DEPLOYMENT = "local"
API_ID = "spotferry"
CODE_BUCKET = "spotferry-local-code"
TEMPLATE_KEY = "template.json"
CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}  # the emulator's root
EVENTS_CODE = "local"
"""What an event of the local Azure brings to be let in: `/events/azure?code=local`."""
DEPLOY_SECONDS = 60
POLL_SECONDS = 0.05
# A laptop's day is short: what a cloud waits minutes for takes seconds here.
SECONDS = {
    "HeartbeatSeconds": 5,
    "AttentionSeconds": 1,
    "LeaseSeconds": 40,
    "BootSeconds": 60,
    "HoldSeconds": 20,
    "CancelSeconds": 20,
    "GraceSeconds": 5,
}


class DeployError(RuntimeError):
    """The template could not be deployed; the text says which resource failed and why."""


def client(service: str, endpoint: str, region: str = REGION) -> Any:  # boto3 makes its clients at run time
    """A client of the emulator (or of the local cloud) at this address."""
    settings = Config(retries={"max_attempts": 3, "mode": "standard"}, connect_timeout=5, read_timeout=120)
    make: Callable[..., Any] = boto3.client  # its overloads know literal names only
    return make(service, endpoint_url=endpoint, region_name=region, config=settings, **CREDENTIALS)


def api_url(endpoint: str) -> str:
    """Where the deployed API is reached from this machine."""
    return f"{endpoint}/_aws/execute-api/{API_ID}/$default"


def deploy(
    endpoint: str,
    overrides: Mapping[str, str] | None = None,
    template: Template | None = None,
    root: Path = ROOT,
) -> dict[str, str]:
    """Deploy the template with the code of the tree under `root`; the stack's outputs.

    Args:
        endpoint: of the emulator.
        overrides: template parameters that differ from the local ones.
        template: instead of the tree's template.yaml.
        root: the tree.

    Raises:
        DeployError: a resource could not be made.
    """
    s3 = client("s3", endpoint)
    s3.create_bucket(Bucket=CODE_BUCKET)

    def upload(kind: str, folder: str) -> str:
        package = pack_layer(root / folder / "spotferry") if kind.endswith("LayerVersion") else pack(root / folder)
        s3.put_object(Bucket=CODE_BUCKET, Key=package.key, Body=package.body)
        return f"s3://{CODE_BUCKET}/{package.key}"

    local = localize(template or read_template(root / "template.yaml"), upload, API_ID)
    s3.put_object(Bucket=CODE_BUCKET, Key=TEMPLATE_KEY, Body=json.dumps(local).encode())
    cloudformation = client("cloudformation", endpoint)
    cloudformation.create_stack(
        StackName=STACK_NAME,
        TemplateURL=f"{endpoint}/{CODE_BUCKET}/{TEMPLATE_KEY}",  # a call of the service takes 50 KB at most
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        Parameters=_parameters(endpoint, overrides or {}),
    )
    return _outputs(cloudformation)


def _parameters(endpoint: str, overrides: Mapping[str, str]) -> list[dict[str, str]]:
    values = {
        "Deployment": DEPLOYMENT,
        "PythonRuntime": f"python{sys.version_info.major}.{sys.version_info.minor}",
        "Auth": "NONE",
        "Protection": "Off",
        "BucketTls": "Off",
        "GcpRelayAccount": "relay@local.iam.gserviceaccount.com",
        "AzureEventsCodeSha256": hashlib.sha256(EVENTS_CODE.encode()).hexdigest(),
        "PublicUrl": api_url(endpoint),
        **{name: str(seconds) for name, seconds in SECONDS.items()},
        **overrides,
    }
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]


def _outputs(cloudformation: Any) -> dict[str, str]:  # a client
    deadline = time.monotonic() + DEPLOY_SECONDS
    while time.monotonic() < deadline:
        stack = cloudformation.describe_stacks(StackName=STACK_NAME)["Stacks"][0]
        if stack["StackStatus"] == "CREATE_COMPLETE":
            return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        if not stack["StackStatus"].endswith("IN_PROGRESS"):
            break
        time.sleep(POLL_SECONDS)
    raise DeployError(_failure(cloudformation.describe_stack_events(StackName=STACK_NAME)["StackEvents"]))


def _failure(events: Sequence[Mapping[str, str]]) -> str:
    reasons = [
        f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason') or event['ResourceStatus']}"
        for event in events
        if event["ResourceStatus"].endswith("FAILED")
    ]
    return "template.yaml could not be deployed locally. " + ("; ".join(reasons) or "It did not end in time.")


def set_up_regions(
    endpoint: str, regions: Sequence[str], provider: str = "aws", network: Mapping[str, str] | None = None
) -> None:
    """Write the settings of launch regions beside the home region's: without a network, the account's default one."""
    ssm = client("ssm", endpoint)
    for region in regions:
        settings = {"provider": provider, "region": region, "network": dict(network or {}), "image_ids": {}}
        ssm.put_parameter(
            Name=f"/spotferry/{DEPLOYMENT}/regions/{provider}/{region}",
            Value=json.dumps(settings),
            Type="String",
            Overwrite=True,
        )


def set_up_keys(endpoint: str, keys: Mapping[str, str]) -> None:
    """Write the keys of clouds that are called with one, by their names."""
    ssm = client("ssm", endpoint)
    for name, value in keys.items():
        path = f"/spotferry/{DEPLOYMENT}/clouds/{name}"
        ssm.put_parameter(Name=path, Value=value, Type="SecureString", Overwrite=True)
