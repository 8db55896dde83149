"""Which deployment's launch regions are meant, and its part of the parameter store.

The settings are written with the operator's own AWS credentials and not through the broker, which can only read them:
docs/decisions/0014-regions-by-the-operator.md.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import ValidationError

from cli.auth import region_in
from cli.endpoint import local_stack
from cli.errors import Failed, NoBroker, UsageProblem
from cli.settings import Settings
from local.deploy import DEPLOYMENT as LOCAL_DEPLOYMENT
from local.stack import read_stack
from spotferry.ports.cloud import RegionSettings
from spotferry.types.errors import Misconfigured
from spotferry.types.faults import sentence_of

DEFAULT_DEPLOYMENT = "spotferry"
"""As the template has it."""
Client = Any  # Any: the SDK makes its clients at run time


@dataclass(frozen=True, slots=True)
class Target:
    """A deployment.

    Attributes:
        deployment: its name.
        home_region: where the broker and its parameters are.
        environment: what leads the clouds' libraries to a local cloud; empty for the real ones.
    """

    deployment: str
    home_region: str
    environment: Mapping[str, str]

    @property
    def is_local(self) -> bool:
        """Whether it is a cloud on this machine."""
        return bool(self.environment)

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """The environment for the time of a block."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def target(settings: Settings, deployment: str = "", home_region: str = "") -> Target:
    """The deployment that was named, that of the broker's address, or the local cloud that runs here.

    Raises:
        NoBroker: none of them.
        UsageProblem: nothing tells its region.
    """
    if not deployment and not settings.url:
        return _local(settings)
    host = urlsplit(settings.url).hostname or ""
    region = home_region or region_in(host) or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise UsageProblem("--home-region: say where the broker was deployed; neither its address nor AWS_REGION tells")
    return Target(deployment or DEFAULT_DEPLOYMENT, region, {})


def _local(settings: Settings) -> Target:
    folder = settings.state_dir()
    local_stack(folder)  # so that a damaged record is said, with what to do
    stack = read_stack(folder)
    if stack is None:
        raise NoBroker
    return Target(LOCAL_DEPLOYMENT, stack.region, stack.functions_environment)


class RegionParameters:
    """The settings of launch regions, as the broker reads them.

    Args:
        where: whose.
        connect: makes the client of a service in a region.
    """

    def __init__(self, where: Target, connect: Callable[[str, str], Client] | None = None) -> None:
        self._where = where
        self._connect = connect or _client

    def all(self) -> Iterator[RegionSettings | str]:
        """All of them in order; of one that the broker could not read its name.

        Raises:
            Failed: AWS refuses, or does not answer.
        """
        path = f"/spotferry/{self._where.deployment}/regions/"
        with self._asking() as ssm:
            pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path, Recursive=True)
            found = {str(p["Name"]): str(p["Value"]) for page in pages for p in page["Parameters"]}
        for name, text in sorted(found.items()):
            try:
                yield RegionSettings.model_validate_json(text)
            except ValidationError:
                yield name

    def get(self, provider: str, region: str) -> RegionSettings:
        """One region's.

        Raises:
            UsageProblem: it is not set up, or not readable.
            Failed: as `all`.
        """
        name = self._name(provider, region)
        with self._asking() as ssm:
            found = ssm.get_parameters(Names=[name])["Parameters"]
        if not found:
            raise UsageProblem(
                f"REGION: {provider} {region} is not set up; see `spotferry region add {provider} --help`"
            )
        try:
            return RegionSettings.model_validate_json(found[0]["Value"])
        except ValidationError as error:
            why = sentence_of(error)
            message = f"REGION: the settings of {provider} {region} cannot be read; set it up anew: {why}"
            raise UsageProblem(message) from error

    def put(self, settings: RegionSettings) -> bool:
        """Write one region's; whether it was set up before.

        Raises:
            Failed: as `all`.
        """
        name = self._name(settings.provider, settings.region)
        with self._asking() as ssm:
            answer = ssm.put_parameter(Name=name, Value=settings.model_dump_json(), Type="String", Overwrite=True)
        return int(answer["Version"]) > 1

    def delete(self, provider: str, region: str) -> bool:
        """Remove one region's; whether it was there.

        Raises:
            Failed: as `all`.
        """
        name = self._name(provider, region)
        with self._asking() as ssm:
            return bool(ssm.delete_parameters(Names=[name])["DeletedParameters"])

    def secret(self, name: str) -> str:
        """A cloud's key, as the broker reads it; never printed.

        Raises:
            Misconfigured: it is not there.
            Failed: as `all`.
        """
        path = f"/spotferry/{self._where.deployment}/clouds/{name}"
        with self._asking() as ssm:
            found = ssm.get_parameters(Names=[path], WithDecryption=True)["Parameters"]
        if not found:
            raise Misconfigured(f"there is no secret {path}: put it there as a SecureString")
        return str(found[0]["Value"]).strip()

    def stack_network(self, stack: str, region: str) -> str:
        """The output Network of a stack of template-region.yaml.

        Raises:
            UsageProblem: there is no such stack, or it has no such output.
            Failed: as `all`.
        """
        with self._asking("cloudformation", region) as cloudformation:
            try:
                outputs = cloudformation.describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
            except ClientError as error:
                if error.response["Error"].get("Code") != "ValidationError":
                    raise
                raise UsageProblem(f"--from-stack: there is no stack {stack} in {region}") from error
        found = {str(output["OutputKey"]): str(output["OutputValue"]) for output in outputs}
        if "Network" not in found:
            raise UsageProblem(f"--from-stack: {stack} is no stack of template-region.yaml: it has no output Network")
        return found["Network"]

    def _name(self, provider: str, region: str) -> str:
        return f"/spotferry/{self._where.deployment}/regions/{provider}/{region}"

    @contextmanager
    def _asking(self, service: str = "ssm", region: str = "") -> Iterator[Client]:
        try:
            with self._where.in_force():
                yield self._connect(service, region or self._where.home_region)
        except ClientError as error:
            said = error.response["Error"]
            raise Failed(f"AWS refuses ({said.get('Code')}): {said.get('Message')}") from error
        except BotoCoreError as error:
            hint = "sign in (`aws sso login`) or set AWS_PROFILE"
            raise Failed(f"AWS cannot be asked: {error}; {hint} where it is your credentials") from error


def _client(service: str, region: str) -> Client:
    make: Callable[..., Client] = boto3.client  # its overloads know literal names only
    return make(service, region_name=region)
