"""The face of Azure's Resource Graph, as far as eviction rates need it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from local import azure_facts as facts
from local.json_face import Json, RestError, page_of

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_TABLE = "microsoft.compute/skuspotevictionrate/location"
_LOCATION = re.compile(r"location =~ '([^']*)'")
_ROWS_A_PAGE = 4
"""Fewer than there are types, so that whoever reads must follow the pages."""


def question_of(environ: WSGIEnvironment) -> tuple[str, Mapping[str, object]]:
    """The region that is asked for, and the options of the page.

    Raises:
        RestError: it is no question about eviction rates.
    """
    try:
        asked = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        query, options = str(asked["query"]), asked["options"]
    except (ValueError, KeyError, TypeError) as error:
        raise RestError(400, "BadRequest", "The body is no question.") from error
    found = _LOCATION.search(query)
    if found is None or _TABLE not in query or not isinstance(options, dict):
        raise RestError(400, "InvalidQuery", "This cloud has eviction rates of one region at a time.")
    return found[1], options


def evictions(region: str, options: Mapping[str, object]) -> Json:
    """One page of the region's eviction rates; types are spelled in lower case here, as Azure does."""
    rows = [
        {"skuName": name.casefold(), "evictionRate": "15-20" if kind.gpus else "0-5"}
        for name, kind in sorted(facts.KINDS.items())
        if kind.spot and region in facts.ZONES
    ]
    shown, following = page_of(rows, str(options.get("$skipToken", "")), _ROWS_A_PAGE)
    page: Json = {"totalRecords": len(rows), "count": len(shown), "data": list(shown), "facets": []}
    return page if following is None else page | {"$skipToken": str(following)}
