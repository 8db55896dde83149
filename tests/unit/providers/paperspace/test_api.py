"""Calls to Paperspace: repeats, deadlines, pages, and answers that are none."""

import httpx
import pytest

from spotferry.providers.context import no_secret
from spotferry.providers.paperspace import api as paperspace_api
from spotferry.providers.paperspace.api import PaperspaceApi, pages
from spotferry.providers.paperspace.credentials import ApiKey
from spotferry.providers.retries import TOTAL_SECONDS
from spotferry.types.errors import ProviderError, ProviderUnavailable, SkipProvider
from tests.unit.providers.paperspace.rig import Answer, ScriptedApi, Time, page, refusal

M = ("GET", "/machines")
POST = ("POST", "/machines")
BUSY = refusal(429, "TOO_MANY_REQUESTS")


def test_a_throttled_call_is_repeated_with_growing_pauses() -> None:
    """Six tries in all, with pauses that double up to four seconds; then there is no verdict."""
    api = ScriptedApi({M: [BUSY]})
    with pytest.raises(ProviderUnavailable) as caught:
        api.begin("NY2").get("/machines")
    assert (caught.value.code, caught.value.region) == ("TOO_MANY_REQUESTS", "NY2")
    assert api.time.pauses == [0.5, 1.0, 2.0, 4.0]
    assert api.time.now + paperspace_api.CONNECT_SECONDS + paperspace_api.READ_SECONDS <= TOTAL_SECONDS


def test_pauses_have_chance_in_them() -> None:
    """Two brokers that were throttled together do not come back together."""
    time = Time(chance=0.0)
    api = ScriptedApi({M: [BUSY, page()]}, time)
    api.begin().get("/machines")
    assert time.pauses == [0.25]


@pytest.mark.parametrize("first", [BUSY, refusal(500), refusal(503, "SERVICE_UNAVAILABLE"), httpx.ReadTimeout("slow")])
def test_a_question_is_asked_again(first: Answer) -> None:
    """Whatever left a question without an answer, the next try may have one."""
    assert ScriptedApi({M: [first, page()]}).begin().get("/machines") == page()


@pytest.mark.parametrize("first", [refusal(500), httpx.ReadTimeout("slow"), b"<html>"])
def test_what_makes_something_is_not_repeated(first: Answer) -> None:
    """A second machine would be a second bill: only a call that was certainly not carried out is made again."""
    api = ScriptedApi({POST: [first, {"data": {}}]})
    with pytest.raises(ProviderUnavailable):
        api.begin().post("/machines", {})
    assert api.calls() == [POST]
    throttled = ScriptedApi({POST: [BUSY, {"data": {}}]})
    assert throttled.begin().post("/machines", {}) == {"data": {}}


def test_calls_that_belong_together_share_a_deadline() -> None:
    """A call that could not end in time is not begun; the next page has a deadline of its own."""
    api = ScriptedApi({M: [page()]})
    calls = api.begin()
    api.time.now = TOTAL_SECONDS - 1
    with pytest.raises(ProviderUnavailable, match="no time was left"):
        calls.get("/machines")
    assert calls.again().get("/machines") == page()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"5", b"", b"{}", b'{"items": '])
def test_an_answer_that_is_no_object(body: bytes) -> None:
    """It is no verdict, and says which call it was."""
    with pytest.raises(ProviderUnavailable, match="GET /machines") as caught:
        ScriptedApi({M: [body]}).begin().get("/machines")
    assert caught.value.code == "MalformedAnswer"


def test_a_refusal_in_another_form() -> None:
    """Without a code the status is one; the issues that it names are part of the words."""
    with pytest.raises(ProviderError) as plain:
        ScriptedApi({M: [httpx.Response(418, text="short and stout")]}).begin().get("/machines")
    assert (plain.value.code, plain.value.message) == ("418", "HTTP 418")
    issues = refusal(400, "BAD_REQUEST", "Input validation failed", issues=[{"message": "limit: too big"}, 5])
    with pytest.raises(ProviderError, match="Input validation failed; limit: too big"):
        ScriptedApi({M: [issues]}).begin().get("/machines")


def test_what_is_gone_is_deleted() -> None:
    """Deleting what is not there succeeds; being refused does not."""
    machine = ("DELETE", "/machines/ps1")
    assert ScriptedApi({machine: [refusal(404, "NOT_FOUND")]}).begin().delete("/machines/ps1") == {}
    assert ScriptedApi({machine: [httpx.Response(204)]}).begin().delete("/machines/ps1") == {}
    with pytest.raises(SkipProvider):
        ScriptedApi({machine: [refusal(401, "UNAUTHORIZED")]}).begin().delete("/machines/ps1")


def test_pages_are_followed_to_the_end() -> None:
    """The cursor of each page asks for the next; every page is as large as it can be."""
    api = ScriptedApi({M: [page({"id": 1}, after="a"), page(after="b"), page({"id": 2})]})
    assert [item["id"] for item in pages(api.begin(), "/machines", {"region": "ny2"})] == [1, 2]
    assert [parameters for _, _, parameters, _ in api.asked] == [
        {"region": "ny2", "limit": "120"},
        {"region": "ny2", "limit": "120", "after": "a"},
        {"region": "ny2", "limit": "120", "after": "b"},
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"items": []},
        {"hasMore": False},
        {"items": {}, "hasMore": False},
        {"items": [5], "hasMore": False},
        {"items": [], "hasMore": "no"},
        {"items": [], "hasMore": True, "nextPage": None},
    ],
)
def test_a_page_that_is_none(broken: Answer) -> None:
    """A listing that is cut short, or might be, is no listing."""
    with pytest.raises(ProviderUnavailable) as caught:
        list(pages(ScriptedApi({M: [broken]}).begin(), "/machines", {}))
    assert caught.value.code == "MalformedAnswer"


def test_a_cursor_that_leads_nowhere_ends() -> None:
    """A page that names itself as the next would be read for ever."""
    api = ScriptedApi({M: [page(after="a")]})
    with pytest.raises(ProviderUnavailable, match="does not name the next"):
        list(pages(api.begin(), "/machines", {}))
    assert len(api.asked) == 2


def test_the_key_goes_to_paperspace_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint is Paperspace's own unless the environment says another; an unreachable one is no verdict."""
    assert PaperspaceApi(ApiKey(no_secret))._url == "https://api.paperspace.com/v1"
    monkeypatch.setenv("PAPERSPACE_API_URL", "http://127.0.0.1:9/v1/")
    api = PaperspaceApi(ApiKey(lambda _name: "key"), timing=Time().timing())
    assert api._url == "http://127.0.0.1:9/v1"
    with pytest.raises(ProviderUnavailable) as caught:
        api.begin().get("/machines")
    assert caught.value.code == "ConnectError"
