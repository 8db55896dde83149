"""How the command speaks to the broker: what it repeats, what refusals mean, how it signs in."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest

from cli.api import TRIES, Api
from cli.auth import BearerToken, Signature, authentication
from cli.errors import Failed, Unreachable, UsageProblem

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker

BUSY = httpx.Response(503)
Problem = Callable[..., httpx.Response]
AWS_URL = "https://abc123.execute-api.eu-west-1.amazonaws.com"


@pytest.fixture
def api(broker: "FakeBroker") -> Api:
    """An API that leads to the broker and does not wait."""
    return Api("https://broker.example/prod/", None, httpx.MockTransport(broker.handle), broker.pauses.append)


def test_an_answer_is_its_json(api: Api, broker: "FakeBroker") -> None:
    """Path, parameters and headers go out as given; JSON comes back."""
    broker.on("GET /prod/jobs", {"jobs": []})
    assert api.request("GET", "/jobs", params={"limit": 3}, headers={"X": "y"}) == {"jobs": []}
    assert str(broker.asked[0].url) == "https://broker.example/prod/jobs?limit=3"
    assert broker.asked[0].headers["X"] == "y"


def test_an_empty_answer_is_an_empty_object(api: Api, broker: "FakeBroker") -> None:
    """204 is no error."""
    broker.on("POST /prod/x", httpx.Response(204))
    assert api.request("POST", "/x") == {}


@pytest.mark.parametrize("fault", [BUSY, httpx.Response(429), httpx.ReadTimeout("slow"), httpx.ConnectError("refused")])
def test_what_may_be_repeated_is_repeated(api: Api, broker: "FakeBroker", fault: httpx.Response | Exception) -> None:
    """A busy broker and a lost answer cost a pause, not the command."""
    broker.on("GET /prod/jobs", fault, fault, {"jobs": []})
    assert api.request("GET", "/jobs") == {"jobs": []}
    assert len(broker.pauses) == 2
    assert 0 < broker.pauses[0] <= 1


def test_a_submission_with_a_key_is_repeated(api: Api, broker: "FakeBroker") -> None:
    """The key makes the second try the same job."""
    broker.on("POST /prod/jobs", httpx.ReadTimeout("slow"), {"job": {}})
    assert api.request("POST", "/jobs", json={}, headers={"Idempotency-Key": "k"}) == {"job": {}}


@pytest.mark.parametrize("fault", [BUSY, httpx.ReadTimeout("slow")])
def test_what_may_have_been_heard_is_not_said_twice(
    api: Api, broker: "FakeBroker", fault: httpx.Response | Exception
) -> None:
    """A POST without a key might do its work twice, so it is not repeated."""
    broker.on("POST /prod/jobs/j/retry", fault, {})
    with pytest.raises(Unreachable):
        api.request("POST", "/jobs/j/retry")
    assert len(broker.asked) == 1


def test_what_was_never_heard_is_said_again(api: Api, broker: "FakeBroker") -> None:
    """A refused connection did nothing, so any request may be repeated after it."""
    broker.on("POST /prod/jobs/j/retry", httpx.ConnectError("refused"), {"job": {}})
    assert api.request("POST", "/jobs/j/retry") == {"job": {}}


def test_it_gives_up_in_the_end(api: Api, broker: "FakeBroker") -> None:
    """A broker that stays away is an error that says what to look at."""
    broker.on("GET /prod/jobs", httpx.ConnectError("refused"))
    with pytest.raises(Unreachable, match=r"does not answer \(refused\).*--url, SPOTFERRY_URL") as caught:
        api.request("GET", "/jobs")
    assert len(broker.asked) == TRIES
    assert caught.value.exit_code == 1


def test_the_broker_says_how_long_to_wait(api: Api, broker: "FakeBroker") -> None:
    """Retry-After is obeyed, within reason."""
    answers = [httpx.Response(429, headers={"Retry-After": text}) for text in ("3", "9999")]
    broker.on("GET /prod/jobs", *answers, {})
    api.request("GET", "/jobs")
    assert broker.pauses == [3, 20]


def test_a_problem_names_its_fields(api: Api, broker: "FakeBroker", make_problem: Problem) -> None:
    """Every field that is wrong is a line, with the line in the job file where there is one."""
    errors = [
        {"field": "task.run", "message": "is missing", "line": 3},
        {"pointer": "#/instance_specs/gpu", "detail": "no such GPU"},
    ]
    broker.on("POST /prod/jobs", make_problem(422, "two problems", *errors))
    with pytest.raises(UsageProblem) as caught:
        api.request("POST", "/jobs")
    assert caught.value.message == "line 3: task.run: is missing\ninstance_specs.gpu: no such GPU"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
def test_a_problem_without_fields_is_its_detail(
    api: Api, broker: "FakeBroker", make_problem: Problem, status: int
) -> None:
    """Any refusal of the broker's is bad input, in the broker's words."""
    broker.on("GET /prod/jobs/j", make_problem(status, "there is no job j"))
    with pytest.raises(UsageProblem, match=r"^there is no job j$"):
        api.request("GET", "/jobs/j")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(404, json={"message": "Not Found"}), "Not Found; is this the broker's address"),
        (httpx.Response(404, text="<html>"), "is this the broker's address"),
        (httpx.Response(302), "is this the broker's address"),
        (httpx.Response(200, text="<html>"), "not JSON; is this the broker's address"),
        (httpx.Response(403, json={"message": "Forbidden"}), r"does not let you in \(403: Forbidden\).*--auth"),
        (httpx.Response(401), "SPOTFERRY_TOKEN"),
        (httpx.Response(500, json={"message": "Internal"}), "in trouble"),
        (httpx.Response(429), "busy"),
    ],
)
def test_what_is_nobodys_bad_input_is_status_1(
    api: Api, broker: "FakeBroker", answer: httpx.Response, words: str
) -> None:
    """A wrong address, a closed door and a broken broker say what to do."""
    broker.on("GET /prod/jobs", answer)
    with pytest.raises(Failed, match=words):
        api.request("GET", "/jobs")


def test_who_asks_is_told_from_address_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """auto: a token where there is one, a signature for AWS, nothing else."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    assert authentication("auto", "http://127.0.0.1:1") is None
    assert isinstance(authentication("auto", AWS_URL), Signature)
    monkeypatch.setenv("SPOTFERRY_TOKEN", "t")
    assert isinstance(authentication("auto", AWS_URL), BearerToken)
    assert authentication("none", AWS_URL) is None


def test_a_token_goes_into_the_header(broker: "FakeBroker") -> None:
    """The bearer of a token says so."""
    broker.on("GET /jobs", {})
    Api("https://broker.example", BearerToken("t0"), httpx.MockTransport(broker.handle)).request("GET", "/jobs")
    assert broker.asked[0].headers["Authorization"] == "Bearer t0"


def test_a_signature_covers_the_request(broker: "FakeBroker", monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to AWS are signed for the API's service and region, with the session's token."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    broker.on("POST /jobs", {})
    Api(AWS_URL, authentication("iam", AWS_URL), httpx.MockTransport(broker.handle)).request(
        "POST", "/jobs", json={"a": 1}
    )
    headers = broker.asked[0].headers
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/execute-api/aws4_request" in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == "session"


def test_a_missing_sign_in_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the chosen way lacks is named."""
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(UsageProblem, match="SPOTFERRY_TOKEN"):
        authentication("token", AWS_URL)
    with pytest.raises(UsageProblem, match="AWS_REGION"):
        authentication("iam", "https://broker.example")
