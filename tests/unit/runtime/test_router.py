"""Calls of the HTTP API find their function, and answers take the form that the API wants."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from spotferry.runtime.http import resolver
from spotferry.runtime.router import Call, Response, Router
from spotferry.types.errors import NotFound
from spotferry.types.job import Upload

Json = dict[str, Any]  # Any: JSON


def event(route: str, **more: object) -> Json:
    """A call as the API hands it over."""
    method, path = route.split(" ", 1)
    return {"version": "2.0", "rawPath": path, "requestContext": {"http": {"method": method}}, **more}


@pytest.fixture
def app() -> Router:
    """Routes of which some are like one another."""
    app = resolver()
    app.get("/jobs/<job_id>")(lambda job_id: {"job": job_id})
    app.get("/jobs/<job_id>/<part>")(lambda job_id, part: {"job": job_id, "part": part})
    app.get("/jobs/newest")(lambda: {"job": "the newest"})
    app.post("/jobs")(lambda: Response(201, "application/json", {"at": datetime(2026, 5, 4, tzinfo=UTC)}))
    return app


@pytest.mark.parametrize(
    ("route", "answer"),
    [
        ("GET /jobs/a-1", {"job": "a-1"}),
        ("GET /jobs/a b%ü", {"job": "a b%ü"}),
        ("GET /jobs/a-1/logs", {"job": "a-1", "part": "logs"}),
        ("get /jobs/a-1", {"job": "a-1"}),
        ("GET /jobs/newest", {"job": "the newest"}),
    ],
)
def test_a_call_goes_to_the_function_of_its_route(app: Router, route: str, answer: Json) -> None:
    """Parameters are whole parts of the path; a path without any comes before one that could be it."""
    said = app.resolve(event(route))
    assert (said["statusCode"], json.loads(said["body"])) == (200, answer)
    assert said["headers"] == {"Content-Type": "application/json"}


@pytest.mark.parametrize("route", ["POST /jobs/a-1", "GET /jobs", "GET /jobs/", "GET /jobs/a/b/c", "GET /v1/jobs/a"])
def test_a_call_that_has_no_route_is_told_so(app: Router, route: str) -> None:
    """404 with a problem document that names verb and path."""
    said = app.resolve(event(route))
    assert (said["statusCode"], said["headers"]["Content-Type"]) == (404, "application/problem+json")
    assert json.loads(said["body"])["detail"] == f"there is no {route}"


def test_an_answer_may_have_a_status_of_its_own(app: Router) -> None:
    """What JSON does not know goes as text."""
    said = app.resolve(event("POST /jobs"))
    assert (said["statusCode"], said["isBase64Encoded"]) == (201, False)
    assert said["body"] == '{"at":"2026-05-04 00:00:00+00:00"}'


def test_bytes_go_as_base64() -> None:
    """The API makes bytes of them again."""
    said = Response(200, "application/zip", b"\x00\xff").to_json()
    assert said["isBase64Encoded"] is True
    assert base64.b64decode(said["body"]) == b"\x00\xff"


def test_text_goes_as_it_is() -> None:
    """No second pair of quotes."""
    assert Response(200, "application/json", '{"a": 1}').to_json()["body"] == '{"a": 1}'


def test_errors_of_ours_and_of_values_are_problems_and_others_are_raised(app: Router) -> None:
    """What nobody foresaw goes to Lambda, which answers 500 and counts it."""

    def fail(kind: str) -> None:
        if kind == "ours":
            raise NotFound("there is no such thing")
        if kind == "values":
            Upload.model_validate({"sha256": "zz", "size_bytes": 1})
        raise ZeroDivisionError(kind)

    app.get("/fail/<kind>")(fail)
    ours, values = (app.resolve(event(f"GET /fail/{kind}")) for kind in ("ours", "values"))
    assert (ours["statusCode"], json.loads(ours["body"])["detail"]) == (404, "there is no such thing")
    assert (values["statusCode"], json.loads(values["body"])["errors"][0]["field"]) == (422, "sha256")
    with pytest.raises(ZeroDivisionError):
        app.resolve(event("GET /fail/otherwise"))


def test_a_call_says_what_came_with_it() -> None:
    """Headers are found whatever their case; what the API leaves out or sends as null is empty."""
    call = Call(event("GET /", headers={"Idempotency-Key": "k"}, queryStringParameters={"limit": "3"}, body="x"))
    assert (call.headers["idempotency-key"], call.query_string_parameters["limit"], call.body) == ("k", "3", "x")
    for bare in (Call(event("GET /")), Call(event("GET /", headers=None, queryStringParameters=None, body=None))):
        assert (dict(bare.headers), dict(bare.query_string_parameters), bare.body) == ({}, {}, "")
        assert bare.is_base64_encoded is False


def test_each_call_is_the_current_one(app: Router) -> None:
    """A warm function answers about the call at hand, not the one before."""
    app.get("/who")(lambda: {"who": app.current_event.headers.get("who", "")})
    told = [json.loads(app.resolve(event("GET /who", headers=headers))["body"]) for headers in ({"who": "ann"}, {})]
    assert told == [{"who": "ann"}, {"who": ""}]
