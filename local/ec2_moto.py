"""What moto does well for EC2 (types, networks, images), in this process, behind one small door."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

from werkzeug.test import Client

from local.ec2_wire import Ec2Error

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# The account of the emulator beside it: one account has both.
ACCOUNT_ID = "000000000000"


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet that a machine can be put in."""

    subnet_id: str
    vpc_id: str
    zone: str
    cidr: str


class Moto:
    """moto's EC2. It takes seconds to load, so that happens beside the start; whoever comes too early waits."""

    def __init__(self) -> None:
        self._app: Future[WSGIApplication] = Future()
        self._lock = threading.Lock()
        self._zones: dict[str, dict[str, str]] = {}
        self._default_subnets: dict[str, dict[str, Subnet]] = {}
        threading.Thread(target=self._load, name="moto-load", daemon=True).start()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Let moto answer a request as it came."""
        return self._app.result()(environ, start_response)

    def zones(self, region: str) -> dict[str, str]:
        """The region's zone names and their ids.

        Raises:
            Ec2Error: there is no such region.
        """
        with self._lock:
            if region not in self._zones:
                answer = self._ask(region, {"Action": "DescribeAvailabilityZones"})
                items = answer.iterfind("{*}availabilityZoneInfo/{*}item")
                self._zones[region] = {_text(item, "zoneName"): _text(item, "zoneId") for item in items}
            return self._zones[region]

    def default_subnets(self, region: str) -> dict[str, Subnet]:
        """The subnets a launch without one goes to, by zone; looked up once, as accounts keep them."""
        with self._lock:
            if region not in self._default_subnets:
                query = {"Action": "DescribeSubnets", "Filter.1.Name": "default-for-az", "Filter.1.Value.1": "true"}
                self._default_subnets[region] = {net.zone: net for net in _subnets(self._ask(region, query))}
            return self._default_subnets[region]

    def subnet(self, region: str, subnet_id: str) -> Subnet:
        """The subnet with this id.

        Raises:
            Ec2Error: InvalidSubnetID.NotFound.
        """
        for known in self._default_subnets.get(region, {}).values():
            if known.subnet_id == subnet_id:
                return known
        return _subnets(self._ask(region, {"Action": "DescribeSubnets", "SubnetId.1": subnet_id}))[0]

    def check_security_groups(self, region: str, group_ids: list[str]) -> None:
        """Make sure that the groups exist.

        Raises:
            Ec2Error: InvalidGroup.NotFound.
        """
        wanted = {f"GroupId.{index}": group_id for index, group_id in enumerate(group_ids, 1)}
        if wanted:
            self._ask(region, {"Action": "DescribeSecurityGroups", **wanted})

    def _ask(self, region: str, params: dict[str, str]) -> ET.Element:
        scope = (
            f"AWS4-HMAC-SHA256 Credential=inside/20260101/{region}/ec2/aws4_request, SignedHeaders=host, Signature=0"
        )
        answer = Client(self._app.result()).post(
            "/",
            data=urlencode({**params, "Version": "2016-11-15"}),
            content_type="application/x-www-form-urlencoded",
            headers={"Authorization": scope, "Host": f"ec2.{region}.amazonaws.com"},
        )
        if answer.status_code >= 500:  # noqa: PLR2004 - the HTTP class of server errors
            raise Ec2Error("OptInRequired", f"The region {region} is not one this cloud has.", 401)
        root = ET.fromstring(answer.data)  # noqa: S314 - the XML is made in this very process
        if answer.status_code != 200:  # noqa: PLR2004 - HTTP OK
            error = root.find("{*}Errors/{*}Error")
            assert error is not None, f"moto refused without an error: {answer.data!r}"
            raise Ec2Error(_text(error, "Code"), _text(error, "Message"), answer.status_code)
        return root

    def _load(self) -> None:
        # moto's sample images cannot be launched here, and making them costs each region a tenth of a second.
        os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        os.environ.setdefault("MOTO_ACCOUNT_ID", ACCOUNT_ID)
        try:
            server = import_module("moto.moto_server.werkzeug_app")
            self._app.set_result(server.DomainDispatcherApplication(server.create_backend_app))
        except Exception as error:  # noqa: BLE001 - whoever waits must get it
            self._app.set_exception(error)
            return
        self.zones("us-east-1")


def _subnets(answer: ET.Element) -> list[Subnet]:
    return [
        Subnet(_text(item, "subnetId"), _text(item, "vpcId"), _text(item, "availabilityZone"), _text(item, "cidrBlock"))
        for item in answer.iterfind("{*}subnetSet/{*}item")
    ]


def _text(element: ET.Element, name: str) -> str:
    return element.findtext(f"{{*}}{name}") or ""
