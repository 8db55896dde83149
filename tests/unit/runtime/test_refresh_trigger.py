"""The order for new prices, as the function gets it."""

import json

from spotferry.runtime.prices import asked_at
from spotferry.runtime.refresh_trigger import RefreshFunction
from tests.builders import NOW


def test_the_function_is_started_and_not_waited_for() -> None:
    """It is invoked as an event, and reads the time of the order from it."""
    calls: list[dict[str, object]] = []

    class Lambda:
        """A client that keeps its calls."""

        def invoke(self, **call: object) -> None:
            """Keep it."""
            calls.append(call)

    RefreshFunction("refresh:live", Lambda)(NOW, "mary")
    (call,) = calls
    assert (call["FunctionName"], call["InvocationType"]) == ("refresh:live", "Event")
    order = json.loads(str(call["Payload"], "utf-8") if isinstance(call["Payload"], bytes) else "")
    assert order == {"asked_at": NOW.isoformat(), "asked_by": "mary"}
    assert asked_at(order) == NOW
    assert asked_at({"source": "aws.events"}) is None
