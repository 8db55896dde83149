"""What the tests of functions share."""

import os
import sys
from collections.abc import Iterator

import pytest
from moto import mock_aws
from moto.moto_api._internal.models import moto_api_backend

from spotferry.runtime import aws_clients, prices
from spotferry.runtime.observability import logger, metrics
from spotferry.runtime.wiring import wiring
from tests.fake_cloud import FakeClouds
from tests.functions import deployment as made


class _Stdout:
    """Standard output as it is now: pytest changes it under the logger."""

    def write(self, text: str) -> int:
        """Write on."""
        return sys.stdout.write(text)

    def flush(self) -> None:
        """Nothing is kept back."""


@pytest.fixture(scope="module")
def services() -> Iterator[None]:
    """The broker's own services in memory, with the clients kept from test to test: making them takes long."""
    caches = (aws_clients.client.cache_clear, aws_clients._session.cache_clear, made.models.cache_clear)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "POWERTOOLS_"))]:
            patch.delenv(name)
        for name, value in made.ENVIRONMENT.items():
            patch.setenv(name, value)
        for clear in caches:
            clear()
        with mock_aws():
            yield
        for clear in caches:
            clear()


@pytest.fixture
def deployment(services: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[made.Deployment]:  # noqa: ARG001
    """A deployment of the test's own; the wiring of the functions is made anew from its environment."""
    moto_api_backend.reset()
    environment = dict(made.ENVIRONMENT)
    made.create_services(environment)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(metrics.provider, "namespace", environment["POWERTOOLS_METRICS_NAMESPACE"])
    monkeypatch.setattr(logger.registered_handler, "stream", _Stdout())
    wiring.cache_clear()
    fresh = made.Deployment(wiring())
    monkeypatch.setitem(vars(fresh.wiring), "clouds", FakeClouds({"aws": fresh.cloud}))
    monkeypatch.setattr(prices, "CloudPrices", lambda: fresh.prices)
    monkeypatch.setattr(aws_clients.client("lambda", made.REGION), "invoke", fresh.order_refresh, raising=False)
    yield fresh
    wiring.cache_clear()
    metrics.provider.clear_metrics()
