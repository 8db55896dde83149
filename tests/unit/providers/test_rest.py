"""Reading JSON from REST APIs: what is asked again, for how long, and what a refusal becomes."""

from decimal import Decimal

import pytest
import urllib3

from spotferry.providers.rest import PATIENCE, RestApi
from spotferry.types.errors import ProviderError, ProviderUnavailable
from tests.unit.providers.replay import Answer, Patience, ReplayedPool, refused


@pytest.fixture
def pool() -> ReplayedPool:
    """Connections without a script yet."""
    return ReplayedPool()


@pytest.fixture
def patience() -> Patience:
    """Time that passes by waiting."""
    return Patience()


@pytest.fixture
def api(pool: ReplayedPool, patience: Patience) -> RestApi:
    """An API with a token."""
    return RestApi("https://api.example/v1", lambda: "secret", pool, patience.timing())


def google_error(status: int, reason: str) -> Answer:
    """An error in the form of Google's APIs."""
    error = {"code": status, "message": "no", "errors": [{"reason": reason, "message": "no"}], "status": "SOME_STATUS"}
    return Answer({"error": error}, status)


def test_numbers_keep_their_digits(api: RestApi, pool: ReplayedPool) -> None:
    """A price on the wire is the decimal that stands there, not its binary neighbour."""
    pool.answer("/v1/prices", Answer(b'{"price": 0.1}'))
    assert api.get("/prices", {"page": "a b"})["price"] == Decimal("0.1")
    assert pool.asked[0].parameters == {"page": "a b"}


def test_every_request_carries_the_token(api: RestApi, pool: ReplayedPool) -> None:
    """The token is asked for anew for each request, and sent as a bearer."""
    pool.answer("/v1/prices", Answer())
    api.get("/prices")
    assert pool.asked[0].headers["Authorization"] == "Bearer secret"


def test_no_token_where_none_is_wanted(pool: ReplayedPool) -> None:
    """A public API gets no authorization at all."""
    pool.answer("/prices", Answer())
    RestApi("https://public.example", pool=pool).get("/prices")
    assert "Authorization" not in pool.asked[0].headers


@pytest.mark.parametrize(
    "hiccup",
    [
        Answer(status=500),
        Answer(status=503),
        Answer(b"<html>busy</html>"),
        Answer(b"[]"),
        google_error(403, "rateLimitExceeded"),
        urllib3.exceptions.ProtocolError("reset"),
        urllib3.exceptions.ReadTimeoutError(urllib3.HTTPSConnectionPool("api.example"), "/", "slow"),
    ],
)
def test_no_verdict_is_asked_again(api: RestApi, pool: ReplayedPool, hiccup: Answer | Exception) -> None:
    """What is no verdict is asked again, with a pause, until there is one."""
    pool.answer("/v1/prices", hiccup, hiccup, Answer({"ok": True}))
    assert api.get("/prices") == {"ok": True}
    assert len(pool.asked) == 3


def test_retry_after_is_obeyed(api: RestApi, pool: ReplayedPool, patience: Patience) -> None:
    """A pause that the cloud names is the least that is waited."""
    pool.answer("/v1/prices", Answer(status=429, headers={"Retry-After": "17"}), Answer())
    api.get("/prices")
    assert patience.waits == [17.0]


@pytest.mark.parametrize("named", ["", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_throttling_without_a_number_waits_three_seconds(
    api: RestApi, pool: ReplayedPool, patience: Patience, named: str
) -> None:
    """A 429 that names no seconds is given three."""
    pool.answer("/v1/prices", Answer(status=429, headers={"Retry-After": named}), Answer())
    api.get("/prices")
    assert patience.waits == [3.0]


def test_pauses_grow_and_end(api: RestApi, pool: ReplayedPool, patience: Patience) -> None:
    """An API that stays busy is left alone for longer each time, and given up within the patience."""
    pool.answer("/v1/prices", google_error(503, "backendError"))
    with refused("backendError", ProviderUnavailable):
        api.get("/prices", region="r1")
    assert patience.waits == sorted(patience.waits)
    assert max(patience.waits) <= 20
    assert 0 < patience.now <= PATIENCE.total_seconds()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (google_error(403, "forbidden"), "forbidden"),
        (Answer({"error": {"status": "PERMISSION_DENIED", "message": "no"}}, 403), "PERMISSION_DENIED"),
        (Answer({"error": {"code": "AuthorizationFailed", "message": "no"}}, 403), "AuthorizationFailed"),
        (Answer({"Error": {"Code": "BadRequest", "Message": "no"}}, 400), "BadRequest"),
        (Answer({"error": "invalid_token"}, 401), "401"),
        (Answer(b"gone", 404), "404"),
        (Answer({"error": {"errors": "none", "code": 418}}, 418), "418"),
    ],
)
def test_a_refusal_keeps_the_clouds_code(api: RestApi, pool: ReplayedPool, answer: Answer, code: str) -> None:
    """A refusal is not asked again, and says what the cloud said."""
    pool.answer("/v1/prices", answer)
    with refused(code):
        api.get("/prices", region="r1")
    assert len(pool.asked) == 1


def test_a_refusal_names_the_region(api: RestApi, pool: ReplayedPool) -> None:
    """Whoever reads the error knows which region it is about."""
    pool.answer("/v1/prices", google_error(403, "forbidden"))
    with pytest.raises(ProviderError) as caught:
        api.get("/prices", region="r1")
    assert (caught.value.region, caught.value.message) == ("r1", "no")


def test_a_link_is_followed_at_home_only(api: RestApi, pool: ReplayedPool) -> None:
    """The token never goes to a host that a link names; the port that a link names does not matter."""
    pool.answer("/v1/more", Answer({"page": 2}))
    assert api.follow("https://api.example:443/v1/more?skip=2") == {"page": 2}
    assert pool.asked[0].parameters == {"skip": "2"}
    with refused("ForeignLink"):
        api.follow("https://elsewhere.example/v1/more", "r1")
