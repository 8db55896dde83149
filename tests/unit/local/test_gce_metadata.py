"""What a local Compute Engine machine may know of itself, and what the audit log says of it."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from local.gce_metadata import GceMetadata
from local.gcp_audit import AuditLog
from tests.contract.waiting import wait_until
from tests.unit.local.gce_world import a_market, sold
from tests.unit.local.relay_double import Relay, relay_at_loopback


@pytest.fixture
def service() -> Iterator[GceMetadata]:
    """The server of a machine with an account."""
    made = GceMetadata(sold(a_market(), serviceAccounts=[{"email": "jobs@local.iam.gserviceaccount.com"}]))
    yield made
    made.close()


def fetch(service: GceMetadata, path: str, flavor: str = "Google") -> tuple[str, str]:
    """A value and its ETag."""
    request = urllib.request.Request(f"http://127.0.0.1:{service.port}{path}", headers={"Metadata-Flavor": flavor})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.headers["Metadata-Flavor"] == "Google"
        return answer.read().decode(), answer.headers.get("ETag", "")


def test_a_machine_knows_itself(service: GceMetadata) -> None:
    """Its name, place, user data and account are there; folders list what is in them."""
    root = "/computeMetadata/v1"
    assert service.environment == {"GCE_METADATA_HOST": f"127.0.0.1:{service.port}"}
    assert fetch(service, f"{root}/instance/name")[0] == "i-1"
    assert fetch(service, f"{root}/instance/zone")[0].endswith("/zones/us-central1-a")
    assert fetch(service, f"{root}/instance/scheduling/preemptible")[0] == "TRUE"
    assert fetch(service, f"{root}/instance/attributes/startup-script")[0].startswith("#!/bin/sh")
    assert fetch(service, f"{root}/instance/scheduling/")[0] == "preemptible"
    token = json.loads(fetch(service, f"{root}/instance/service-accounts/default/token")[0])
    assert token["token_type"] == "Bearer"
    assert fetch(service, f"{root}/instance/service-accounts/default/email")[0].startswith("jobs@")
    identity = fetch(service, f"{root}/instance/service-accounts/default/identity?audience=https://broker")[0]
    assert identity.count(".") == 2
    assert fetch(service, "/")[0] == "computeMetadata/\n"


@pytest.mark.parametrize(
    ("path", "flavor", "status"), [("/computeMetadata/v1/instance/name", "", 403), ("/x", "Google", 404)]
)
def test_who_does_not_know_where_it_asks_is_told_nothing(
    service: GceMetadata, path: str, flavor: str, status: int
) -> None:
    """A request without the header, or for nothing that exists, is refused."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        fetch(service, path, flavor)
    caught.value.close()
    assert caught.value.code == status


def test_a_machine_without_an_account_has_no_token() -> None:
    """As on Google's own."""
    service = GceMetadata(sold(a_market()))
    try:
        with pytest.raises(urllib.error.HTTPError) as caught:
            fetch(service, "/computeMetadata/v1/instance/service-accounts/default/token")
        caught.value.close()
        assert caught.value.code == 404
    finally:
        service.close()


def test_the_audit_log_of_preemptions_is_posted() -> None:
    """As the event that the relay is made for, tried again when it is refused; nothing else is told."""
    relay = Relay(refusals=1)
    with relay_at_loopback(relay) as url:
        market = a_market()
        log = AuditLog(market, url)
        market.subscribe(log.hear)
        taken, spared = sold(market), sold(market, name="i-2")
        market.interrupt(spared.allocated_id, false_notice=True)
        market.interrupt(taken.allocated_id)
        wait_until(lambda: len(relay.taken) == 1)
        log.close()
    [(headers, body)] = relay.taken
    entry = json.loads(body)
    assert headers["ce-type"] == "google.cloud.audit.log.v1.written"
    assert headers["ce-methodname"] == "compute.instances.preempted"
    assert entry["protoPayload"]["resourceName"] == "projects/local/zones/us-central1-a/instances/i-1"
    assert datetime.fromisoformat(entry["timestamp"]) <= datetime.now(UTC)
