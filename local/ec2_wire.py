"""The EC2 query protocol: form parameters in, XML out, errors in EC2's own envelope."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TypeAlias
from urllib.parse import parse_qsl
from xml.etree import ElementTree as ET

from botocore.loaders import Loader
from botocore.model import ListShape, ServiceModel, Shape, StructureShape

Value: TypeAlias = "str | int | bool | datetime | Sequence[Value] | Mapping[str, Value] | None"
_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
_SCOPE = re.compile(r"Credential=([^/]+)/\d{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")


class Ec2Error(Exception):
    """An error in EC2's words; `status` is the HTTP status EC2 sends with the code."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


class Params:
    """The parameters of one call, or of one structure in it, by their names on the wire."""

    def __init__(self, flat: Mapping[str, str]) -> None:
        self._flat = flat

    @classmethod
    def from_form(cls, body: bytes) -> Params:
        """Parse a form body."""
        return cls(dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True)))

    def flat(self) -> dict[str, str]:
        """All of them, as they came."""
        return dict(self._flat)

    def text(self, name: str) -> str | None:
        """A single value; None when it was not given."""
        return self._flat.get(name)

    def required(self, name: str) -> str:
        """A single value that must be there.

        Raises:
            Ec2Error: MissingParameter.
        """
        value = self._flat.get(name)
        if not value:
            raise Ec2Error("MissingParameter", f"The request must contain the parameter {name}")
        return value

    def integer(self, name: str) -> int | None:
        """A whole number; None when it was not given.

        Raises:
            Ec2Error: InvalidParameterValue for anything else.
        """
        value = self._flat.get(name)
        if value is None:
            return None
        if not re.fullmatch(r"-?\d{1,9}", value):
            raise Ec2Error("InvalidParameterValue", f"Value ({value}) for parameter {name} is invalid: not an integer.")
        return int(value)

    def flag(self, name: str) -> bool:
        """Whether a boolean was given as true."""
        return self._flat.get(name, "").lower() == "true"

    def blob(self, name: str) -> bytes:
        """A base64 value, decoded; empty when it was not given.

        Raises:
            Ec2Error: InvalidParameterValue when it is not base64.
        """
        try:
            return base64.b64decode(self._flat.get(name, ""), validate=True)
        except binascii.Error:
            raise Ec2Error("InvalidParameterValue", f"Invalid BASE64 encoding of {name}.") from None

    def texts(self, name: str) -> list[str]:
        """A list of single values, in order."""
        return [self._flat[f"{name}.{index}"] for index in self._indices(name)]

    def structs(self, name: str) -> list[Params]:
        """A list of structures, in order."""
        return [self.struct(f"{name}.{index}") for index in self._indices(name)]

    def struct(self, name: str) -> Params:
        """A nested structure; without values when it was not given."""
        prefix = f"{name}."
        return Params({key.removeprefix(prefix): value for key, value in self._flat.items() if key.startswith(prefix)})

    def __bool__(self) -> bool:
        return bool(self._flat)

    def _indices(self, name: str) -> list[int]:
        pattern = re.compile(rf"{re.escape(name)}\.(\d+)(?:\.|$)")
        return sorted({int(found[1]) for found in map(pattern.match, self._flat) if found})


def credential_scope(authorization: str) -> tuple[str, str] | None:
    """The access key and the region a request was signed with; None when it was not signed for EC2's way."""
    found = _SCOPE.search(authorization)
    return (found[1], found[2]) if found else None


def render(action: str, request_id: str, result: Mapping[str, Value]) -> bytes:
    """The XML body of an answer, after the service's own model of the action."""
    root = ET.Element(f"{action}Response", {"xmlns": _NAMESPACE})
    ET.SubElement(root, "requestId").text = request_id
    shape = _service_model().operation_model(action).output_shape
    if isinstance(shape, StructureShape):
        _fill(root, shape, result)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root)


def render_error(error: Ec2Error, request_id: str) -> bytes:
    """The XML body of a refusal."""
    root = ET.Element("Response")
    entry = ET.SubElement(ET.SubElement(root, "Errors"), "Error")
    ET.SubElement(entry, "Code").text = error.code
    ET.SubElement(entry, "Message").text = error.message
    ET.SubElement(root, "RequestID").text = request_id
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root)


@cache
def _service_model() -> ServiceModel:
    return ServiceModel(Loader().load_service_model("ec2", "service-2"), "ec2")


def _fill(parent: ET.Element, shape: StructureShape, values: Mapping[str, Value]) -> None:
    for name, value in values.items():
        if value is None:
            continue
        member = shape.members[name]
        _append(parent, str(member.serialization.get("name", name)), member, value)


def _append(parent: ET.Element, tag: str, shape: Shape, value: Value) -> None:
    element = ET.SubElement(parent, tag)
    if isinstance(shape, StructureShape) and isinstance(value, Mapping):
        _fill(element, shape, value)
    elif isinstance(shape, ListShape) and isinstance(value, Sequence):
        item_tag = str(shape.member.serialization.get("name", "item"))
        for item in value:
            _append(element, item_tag, shape.member, item)
    else:
        element.text = _scalar(value)


def _scalar(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    return str(value)
