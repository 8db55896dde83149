"""Prices are read from four clouds, one of them in trouble, and the next job is placed by them."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.demo import read_object
from local.deploy import DEPLOYMENT, client
from local.stack import Options, Stack, running
from spotferry.catalog.catalogue_file import read_catalogue
from spotferry.domain.placement import Limits, OfferIndex, choose
from spotferry.types import Offer, UserInstanceSpecs
from tests.e2e.broker import Broker, eventually

pytestmark = pytest.mark.e2e

Json = dict[str, Any]  # Any: JSON of the API

OPENED = (("gcp", "us-central1"), ("azure", "eastus"), ("paperspace", "NY2"))
BARGAIN = {"region": "us-west-2", "zone": "us-west-2b", "type": "m5.xlarge"}
REFRESH_SECONDS = 180
BARGAIN_USD_HOUR = "0.0011"
JOB = "name: bargain\ninstance_specs: {cpu_cores: 2, memory_gb: 4, providers: [aws]}\ntask: {run: echo cheap}\n"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A local cloud of the test's own, in which every function may do what its role says and nothing else."""
    with (
        running(tmp_path_factory.mktemp("prices"), Options(tied=True, auth=True)) as stack,
        Broker(stack) as broker,
    ):
        for provider, region in OPENED:
            _open(stack, provider, region)
        _close(stack, "aws", "eu-west-1")  # two regions of AWS tell as much as three
        yield broker


def _open(stack: Stack, provider: str, region: str) -> None:
    client("ssm", stack.emulator_url).put_parameter(
        Name=f"/spotferry/{DEPLOYMENT}/regions/{provider}/{region}",
        Value=json.dumps({"provider": provider, "region": region}),
        Type="String",
    )


def _close(stack: Stack, provider: str, region: str) -> None:
    name = f"/spotferry/{DEPLOYMENT}/regions/{provider}/{region}"
    client("ssm", stack.emulator_url).delete_parameter(Name=name)


def _lever(broker: Broker, name: str, body: object) -> None:
    httpx.post(f"{broker.stack.cloud_url}/_market/{name}", json=body, timeout=10).raise_for_status()


def _refresh(broker: Broker) -> Json:
    """Order a refresh, and wait until it is in force: the catalogue as the API tells it."""
    answer = broker.send("POST", "/catalog/refresh")
    assert answer.status_code == 202, answer.text
    asked = datetime.fromisoformat(answer.json()["asked_at"])

    def look() -> Json | None:
        told = broker.get("/catalog")
        return told if datetime.fromisoformat(told["built_at"]) >= asked else None

    found: Json = eventually("the new prices are in force", look, REFRESH_SECONDS)
    return found


def _by_place(told: Json) -> Mapping[tuple[str, str], Json]:
    return {(region["provider"], region["region"]): region for region in told["regions"]}


def _cheapest(broker: Broker, into: Path, specs: UserInstanceSpecs) -> Offer:
    """The cheapest offer of the catalogue in force, wherever one may launch."""
    pointer = json.loads(read_object(broker.stack, "catalog/current.json") or b"{}")
    into.write_bytes(read_object(broker.stack, pointer["key"]) or b"")
    chosen = choose(OfferIndex(read_catalogue(into)), specs, Limits())
    assert chosen is not None
    return chosen.offer


def test_one_cloud_in_trouble_keeps_its_prices_and_the_next_job_goes_by_the_new_ones(
    broker: Broker, tmp_path: Path
) -> None:
    """All four are read; then one fails and keeps what it had with its age, the others are new, and a job follows."""
    first = _by_place(_refresh(broker))
    assert {place for place in first if place in OPENED} == set(OPENED)
    assert [region["problem"] for region in first.values()] == [""] * len(first)
    assert all(region["offers"] for region in first.values())
    t4 = _cheapest(broker, tmp_path / "catalogue.db", UserInstanceSpecs(gpu="T4", providers=("gcp",)))
    assert (t4.gpu_name, t4.region) == ("T4", "us-central1")

    _lever(broker, "fail", {"operation": "azure.*", "times": 1000, "code": "AuthorizationFailed", "status": 403})
    _lever(broker, "prices", [{**BARGAIN, "spot": BARGAIN_USD_HOUR, "fixed": True}])
    begun = datetime.now(UTC)
    second = _by_place(_refresh(broker))
    azure, aws = second["azure", "eastus"], second["aws", "us-west-2"]
    assert "AuthorizationFailed" in azure["problem"]
    assert (azure["offers"], azure["oldest"]) == (
        first["azure", "eastus"]["offers"],
        first["azure", "eastus"]["oldest"],
    )
    assert datetime.fromisoformat(azure["tried_at"]) >= begun
    assert aws["problem"] == ""
    assert datetime.fromisoformat(aws["oldest"]) >= begun

    job_id = broker.submit(JOB)
    done = broker.wait(job_id, "DONE")
    (machine,) = done["instances"]
    assert (machine["region"], machine["instance_type"]) == (BARGAIN["region"], BARGAIN["type"])
    assert str(machine["price_usd_hour"]) == BARGAIN_USD_HOUR
    broker.assert_machines_gone(job_id)
