"""Trouble ordered for a cloud's API: throttling, answers that get lost, credentials and regions that are denied."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(slots=True)
class Fault:
    """An error the next `times` calls of matching operations in matching regions get instead of an answer."""

    operation: str
    region: str
    times: int
    code: str
    message: str
    status: int

    def fits(self, operation: str, region: str) -> bool:
        """Tell whether a call is meant and some are left."""
        return self.times > 0 and fnmatchcase(operation, self.operation) and fnmatchcase(region, self.region)


class Faults:
    """The faults that are ordered at the moment; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._lost: list[Fault] = []
        self._revoked: set[str] = set()
        self._denied: dict[str, str] = {}

    def inject(self, fault: Fault) -> None:
        """Answer the fault's next calls with its error."""
        with self._lock:
            self._faults.append(fault)

    def lose_answers(self, operation: str, times: int) -> None:
        """Do what the next calls ask, and drop the connection instead of answering."""
        with self._lock:
            self._lost.append(Fault(operation, "*", times, "", "", 0))

    def take_error(self, operation: str, region: str) -> Fault | None:
        """The error this call must get, used up by asking."""
        return self._take(self._faults, operation, region)

    def take_lost(self, operation: str, region: str) -> bool:
        """Tell whether this call's answer must be lost, used up by asking."""
        return self._take(self._lost, operation, region) is not None

    def revoke(self, access_key: str) -> None:
        """Refuse the key from now on; `*` refuses every key."""
        with self._lock:
            self._revoked.add(access_key)

    def restore(self, access_key: str) -> None:
        """Accept the key again; `*` accepts all that were revoked."""
        with self._lock:
            self._revoked = set() if access_key == "*" else self._revoked - {access_key}

    def revoked(self, access_key: str) -> bool:
        """Tell whether calls with the key must be refused."""
        with self._lock:
            return "*" in self._revoked or access_key in self._revoked

    def deny_region(self, region: str, code: str) -> None:
        """Refuse every call in the region with the code."""
        with self._lock:
            self._denied[region] = code

    def allow_region(self, region: str) -> None:
        """Take the region's denial back."""
        with self._lock:
            self._denied.pop(region, None)

    def denial(self, region: str) -> str | None:
        """The code calls in the region are refused with, if they are."""
        with self._lock:
            return self._denied.get(region)

    def clear(self) -> None:
        """Forget all trouble."""
        with self._lock:
            self._faults, self._lost, self._revoked, self._denied = [], [], set(), {}

    def _take(self, faults: list[Fault], operation: str, region: str) -> Fault | None:
        with self._lock:
            for fault in faults:
                if fault.fits(operation, region):
                    fault.times -= 1
                    return fault
        return None
