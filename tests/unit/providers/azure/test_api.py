"""Calls to the resource manager: repeats, deadlines, tokens, and what goes wrong before anything is asked."""

from functools import partial

import pytest
import requests
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.core.rest import HttpRequest

from spotferry.providers.azure import api
from spotferry.providers.azure.api import Calls, Connection, connection
from spotferry.providers.retries import TOTAL_SECONDS, Deadline
from spotferry.types.errors import (
    Misconfigured,
    ProviderError,
    ProviderUnavailable,
    SkipProvider,
)
from tests.unit.providers.azure.rig import BASE, Answer, Rig, Script, refused

PATH = "/subscriptions/sub/thing"


@pytest.fixture
def rig() -> Rig:
    """An adapter over a script."""
    return Rig()


def get(connection: Connection) -> object:
    """One question."""
    return connection.send(HttpRequest("GET", PATH)).json()


def follow(url: str, connection: Connection) -> object:
    """A question at a whole address."""
    return connection.send(HttpRequest("GET", url))


def test_what_throttles_is_asked_again_as_late_as_it_wants(rig: Rig) -> None:
    """Retry-After is the least pause; without it pauses grow."""
    throttled = refused(429, "TooManyRequests", **{"Retry-After": "4"})
    rig.script.answer(PATH, throttled, refused(503, "ServerBusy"), Answer(200, {"a": 1}))
    assert rig.calls().ask(get) == {"a": 1}
    assert rig.timing.pauses == [4.0, 1.0]


def test_a_pause_that_does_not_fit_is_not_made(rig: Rig) -> None:
    """A cloud that asks for a minute is asked again by somebody else."""
    rig.script.answer(PATH, refused(429, "TooManyRequests", **{"Retry-After": "60"}))
    with pytest.raises(ProviderUnavailable) as caught:
        rig.calls().ask(get)
    assert caught.value.code == "TooManyRequests"
    assert rig.timing.pauses == []


def test_the_deadline_is_the_calls_together(rig: Rig) -> None:
    """What the first call used up is missing to the second; another batch has a deadline of its own."""
    rig.script.answer(PATH, Answer(200, {}))
    calls = rig.calls()
    rig.timing.seconds += TOTAL_SECONDS
    with pytest.raises(ProviderUnavailable, match="no time"):
        calls.ask(get)
    assert not calls.deadline.wait(0.0)
    assert calls.again().ask(get) == {}


@pytest.mark.parametrize(
    "trouble",
    [
        requests.exceptions.ConnectTimeout(),
        requests.exceptions.ReadTimeout(),
        requests.exceptions.ConnectionError(),
        requests.exceptions.ChunkedEncodingError(),
        Answer(200, "<html>"),
        Answer(200, ""),
    ],
)
def test_no_answer_is_no_verdict(rig: Rig, trouble: Answer | Exception) -> None:
    """Lost connections and answers that cannot be read are asked about again, a few times."""
    rig.script.answer(PATH, trouble)
    with pytest.raises(ProviderUnavailable) as caught:
        rig.calls().ask(get)
    assert caught.value.code
    assert 2 <= len(rig.script.asked) <= 5


def test_a_refusal_is_asked_once(rig: Rig) -> None:
    """What is a verdict is final."""
    rig.script.answer(PATH, refused(409, "AllocationFailed"))
    with pytest.raises(ProviderError):
        rig.calls().ask(get)
    assert len(rig.script.asked) == 1


def test_the_token_goes_to_the_resource_manager_alone(rig: Rig) -> None:
    """A link that leads elsewhere is not followed, and nobody gets the token."""
    rig.script.answer("GET", Answer(200, {}))
    elsewhere = (
        "https://management.example.evil/x",
        "https://management.example:444/x",
        "http://management.example/x",
        "https://management.example@evil.example/x",
    )
    for url in elsewhere:
        with pytest.raises(ProviderError) as caught:
            rig.calls().ask(partial(follow, url))
        assert caught.value.code == "ForeignLink"
    assert rig.script.asked == []
    rig.calls().ask(lambda c: c.send(HttpRequest("GET", f"https://management.example:443{PATH}")))
    assert rig.script.asked[0].headers["Authorization"] == "Bearer a-token"


class _Refused:
    """A credential that has no token."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
        """None."""
        raise self._error


@pytest.mark.parametrize(
    ("error", "expected", "code"),
    [
        (ClientAuthenticationError("AADSTS7000215: invalid secret"), SkipProvider, "ClientAuthenticationError"),
        (Misconfigured("AZURE_CLIENT_ID is not set"), SkipProvider, "NoCredentials"),
        (ProviderError("AccessDenied", "no token of AWS"), SkipProvider, "AccessDenied"),
        (ProviderUnavailable("Throttling", "no token of AWS"), ProviderUnavailable, "Throttling"),
    ],
)
def test_without_a_token(error: Exception, expected: type[ProviderError], code: str) -> None:
    """Who has none is skipped; who could not be asked for one is no verdict."""
    rig = Rig()
    broken = connection(_Refused(error), "sub", BASE)
    with pytest.raises(expected) as caught:
        Calls("eastus", Deadline(rig.timing.timing(), TOTAL_SECONDS, 1.0), broken).ask(get)
    assert caught.value.code == code


def test_without_a_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud is skipped, and the message names the variable."""
    monkeypatch.delenv("AZURE_SUBSCRIPTION_ID", raising=False)
    with pytest.raises(SkipProvider, match="AZURE_SUBSCRIPTION_ID"):
        api.connect()


def test_with_half_a_federation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud is skipped, and the message names what is missing."""
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "sub")
    monkeypatch.setenv("AZURE_FEDERATION", "aws")
    monkeypatch.delenv("AZURE_TENANT_ID", raising=False)
    with pytest.raises(SkipProvider, match="AZURE_TENANT_ID"):
        api.connect()


def test_the_environment_names_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop's or a sovereign cloud's; a slash at its end does not count."""
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "sub")
    monkeypatch.delenv("AZURE_FEDERATION", raising=False)
    monkeypatch.setenv("AZURE_RESOURCE_MANAGER_URL", "https://elsewhere.example/")
    made = api.connect()
    assert (made.base_url, made.subscription) == ("https://elsewhere.example", "sub")


def test_the_clients_are_made_once(rig: Rig) -> None:
    """Making them loads thousands of classes."""
    made: list[Connection] = []
    over = rig.calls().connection

    def connect() -> Connection:
        made.append(over)
        return over

    shared = api.AzureApi(connect, rig.timing.timing())
    assert shared.begin("eastus").connection is shared.begin("westeurope").connection
    assert len(made) == 1


def test_a_script_is_asked_through_the_real_client(rig: Rig) -> None:
    """What tests script is what the SDK asks: its own path and version."""
    rig.script.answer("instanceView", Answer(200, {"statuses": []}))
    rig.calls().connection.compute.virtual_machines.instance_view("g", "n")
    [asked] = rig.script.asked
    assert asked.path.endswith("/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/n/instanceView")
    assert asked.query["api-version"]
    assert isinstance(rig.script, Script)
