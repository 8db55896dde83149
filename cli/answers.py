"""What the broker's refusals mean to a person."""

from collections.abc import Mapping

import click
import httpx

from cli.errors import Failed, Unreachable, UsageProblem

_PROBLEM = "application/problem+json"


def explain(answer: httpx.Response) -> click.ClickException:
    """The error to end with for an answer that is not a success."""
    status, problem = answer.status_code, _problem(answer)
    if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        return Failed(
            f"the broker does not let you in ({status}{_because(problem)}); check --auth, your AWS credentials or"
            " SPOTFERRY_TOKEN"
        )
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return Unreachable("the broker is busy (429); try again in a minute")
    if answer.is_server_error:
        return Unreachable(f"the broker is in trouble ({status}{_because(problem)}); nothing you did: try again later")
    if not answer.is_client_error or not _is_problem(answer, problem):
        return Failed(f"{answer.url} answered {status}{_because(problem)}; is this the broker's address?")
    return UsageProblem("\n".join(_lines(problem)))


def _problem(answer: httpx.Response) -> Mapping[str, object]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _is_problem(answer: httpx.Response, problem: Mapping[str, object]) -> bool:
    return _PROBLEM in answer.headers.get("content-type", "") or "title" in problem


def _because(problem: Mapping[str, object]) -> str:
    text = problem.get("detail") or problem.get("title") or problem.get("message")
    return f": {text}" if text else ""


def _lines(problem: Mapping[str, object]) -> list[str]:
    """A line for each thing that is wrong; what is wrong in one field starts with its name."""
    errors = problem.get("errors")
    found = [_line(error) for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    return found or [str(problem.get("detail") or problem.get("title") or "the broker refused the input")]


def _line(error: Mapping[str, object]) -> str:
    field = str(error.get("field") or error.get("pointer") or "").removeprefix("#/").replace("/", ".")
    message = str(error.get("message") or error.get("detail") or "is wrong")
    line = f"line {error['line']}: " if error.get("line") else ""
    return f"{line}{f'{field}: ' if field else ''}{message}"
