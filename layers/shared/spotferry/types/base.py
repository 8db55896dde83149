"""What all records share: strict parsing, money as Decimal, aware times."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

Json = dict[str, Any]  # Any: JSON as a protocol of ours has it

RECORD_VERSION = 1
"""Version of every stored record; a reader ignores fields it does not know."""


def _exact(value: object) -> object:
    """A JSON number becomes the decimal that a person reads in it, not its binary neighbour."""
    return str(value) if isinstance(value, float) else value


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        msg = "must be a finite number"
        raise ValueError(msg)
    return value


Money = Annotated[Decimal, BeforeValidator(_exact), AfterValidator(_finite)]
"""US dollars; Decimal inside, a string in JSON so that nothing is rounded."""

JsonMoney = Annotated[
    Decimal,
    BeforeValidator(_exact),
    AfterValidator(_finite),
    PlainSerializer(float, return_type=float, when_used="json"),
]
"""US dollars; Decimal inside, a JSON number outside, as the seed's records have it."""


def _in_seconds(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


Time = Annotated[AwareDatetime, PlainSerializer(_in_seconds, return_type=str, when_used="json")]
"""An aware time; RFC 3339 in JSON."""


SHA256 = "^[0-9a-f]{64}$"
Sha256 = Annotated[str, Field(pattern=SHA256)]
"""A digest, in hexadecimal digits."""


class Value(BaseModel):
    """An immutable value that crosses a wire; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


class Record(BaseModel):
    """An immutable stored record; fields of a later version are ignored, changes are made by `model_copy`."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", populate_by_name=True, protected_namespaces=(), defer_build=True
    )
