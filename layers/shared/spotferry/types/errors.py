"""Every error the product raises on purpose, named for what the caller does next.

```
SpotferryError
├── InvalidInput            tell the person which field; nothing was written            (422, exit 2)
│   ├── InvalidJobFile      ... with the file and the line of each problem
│   └── ImpossibleSpecs     no offer can ever meet the specification
├── TooLarge                the body is over the limit                                  (413, exit 2)
├── NotFound                there is no such job, instance, checkpoint or output        (404, exit 2)
├── IdempotencyConflict     the key was used for another body                           (409, exit 2)
├── NotPossibleNow          the job's state does not allow it (IllegalTransition)       (409, exit 2)
├── Unauthenticated         the agent's token does not open this instance               (401)
├── StaleAttempt            the attempt no longer takes part: stop and shut down        (410)
├── Conflict                somebody saved first: load again, decide again
├── NotYet                  the cloud has not settled: ask again after `retry_in`
├── Misconfigured           the deployment lacks something: the operator mends it       (500)
└── ProviderError           a cloud said no; carries its code, message, region
    ├── ProviderUnavailable the call failed without a verdict: the same request again, later
    └── CapacityError       this candidate is not to be had; the subclass says what to try next
        ├── TryNextZone     the same type in another zone
        ├── TryNextRegion   another region
        ├── TryNextType     another instance type
        ├── SkipProvider    nothing of this cloud for now
        ├── TryAgainLater   the same candidate, same token, after a pause
        ├── LaunchRefused   the request itself is wrong for this region: no retry mends it
        └── UnknownLaunchError  a code we have not met: set the pool aside, keep the cloud's words
```
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal

from spotferry.types.words import MOST_PROBLEMS, counted

BanScope = Literal["none", "pool", "zone", "region", "size", "family", "type", "provider"]
"""How far a refusal reaches: the pool (type, zone, market), the zone's whole market, the region's market, the very type
in the region, the type's family in the region, the type's family in every region, or the cloud."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input.

    Attributes:
        field: dotted path of the field, as the person wrote it ("instance_specs.memory_gb"); "" means the whole body.
        message: what is wrong and what would be right.
        line: line in the job file, counted from 1; None where there is no file.
    """

    field: str
    message: str
    line: int | None = None


class SpotferryError(Exception):
    """The root of the tree."""


class InvalidInput(SpotferryError):
    """The input is wrong; nothing was written.

    Args:
        problems: at least one; all that were found, so that a person mends them in one go. Of very many the first are
            told, and how many more there are.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        more = len(problems) - MOST_PROBLEMS
        rest = [Problem("", f"and {counted(more, 'more problem')}; mend these first")] if more > 0 else []
        self.problems = (*problems[:MOST_PROBLEMS], *rest)
        super().__init__("; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in self.problems))


def wrong(field: str, message: str) -> InvalidInput:
    """The refusal of one field."""
    return InvalidInput([Problem(field, message)])


class InvalidJobFile(InvalidInput):
    """A job file is wrong; the text names file, line and key of each problem."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        self.path = path

    def __str__(self) -> str:
        """One line a problem: `job.yml:3: task.run: ...`, or `line 3: task.run: ...` where no file is known."""
        return "\n".join(f"{self._where(p)}{f'{p.field}: ' if p.field else ''}{p.message}" for p in self.problems)

    def _where(self, problem: Problem) -> str:
        if self.path:
            return f"{self.path}{f':{problem.line}' if problem.line else ''}: "
        return f"line {problem.line}: " if problem.line else ""


class ImpossibleSpecs(InvalidInput):
    """No offer can ever meet the specification; the problem names the condition that excluded the most."""


class TooLarge(SpotferryError):
    """The body is larger than the limit that the message names."""


class NotFound(SpotferryError):
    """There is no such thing; the message says what was asked for."""


class IdempotencyConflict(SpotferryError):
    """The Idempotency-Key was used before, for another body."""


class NotPossibleNow(SpotferryError):
    """The state of the job does not allow what was asked."""


class IllegalTransition(NotPossibleNow):
    """The pair of state and event is neither a move nor a stated no-op.

    Attributes:
        state: the job's state.
        event: the event's name.
    """

    def __init__(self, state: str, event: str) -> None:
        super().__init__(f"a job that is {state} cannot take {event}")
        self.state = state
        self.event = event


class Unauthenticated(SpotferryError):
    """The agent's token or key does not open this instance."""


class StaleAttempt(SpotferryError):
    """The attempt has ended or lost the job: its agent stops the task and shuts the machine down."""


class Conflict(SpotferryError):
    """Somebody saved the record first: load again and decide again."""


class NotYet(SpotferryError):
    """The outcome is not known yet; ask again.

    Attributes:
        retry_in: how long to wait first.
    """

    def __init__(self, message: str, retry_in: timedelta) -> None:
        super().__init__(message)
        self.retry_in = retry_in


class Misconfigured(SpotferryError):
    """The deployment lacks something that the message names; the operator mends it."""


class ProviderError(SpotferryError):
    """A cloud answered with an error.

    Attributes:
        code: the cloud's own code, as given.
        message: the cloud's own words.
        region: the region that was asked; "" where the call has none.
    """

    def __init__(self, code: str, message: str, region: str = "") -> None:
        super().__init__(f"{code}: {message}" + (f" ({region})" if region else ""))
        self.code = code
        self.message = message
        self.region = region


class ProviderUnavailable(ProviderError):
    """The call ended without a verdict (throttled, timed out, 5xx): the same request again, later."""


class CapacityError(ProviderError):
    """This candidate is not to be had now.

    Attributes:
        scope: how far the refusal reaches.
        ban_for: how long to leave it alone.
    """

    default_scope: ClassVar[BanScope] = "pool"
    default_ban: ClassVar[timedelta] = timedelta(minutes=3)

    def __init__(
        self,
        code: str,
        message: str,
        region: str = "",
        *,
        scope: BanScope | None = None,
        ban_for: timedelta | None = None,
    ) -> None:
        super().__init__(code, message, region)
        self.scope: BanScope = scope or self.default_scope
        self.ban_for = self.default_ban if ban_for is None else ban_for


class TryNextZone(CapacityError):
    """The zone has none of this type: the same type in another zone, then another region, then another type."""


class TryNextRegion(CapacityError):
    """The region is closed to this market (quota, opt-in, denial): another region."""

    default_scope = "region"
    default_ban = timedelta(minutes=10)


class TryNextType(CapacityError):
    """The type, or its family's quota, is not to be had here: another type."""

    default_scope = "family"
    default_ban = timedelta(minutes=10)


class SkipProvider(CapacityError):
    """The cloud refuses us (credentials, account): nothing of it for a while."""

    default_scope = "provider"
    default_ban = timedelta(minutes=15)


class TryAgainLater(CapacityError):
    """The cloud is throttling or failing: the same candidate with the same token after a pause."""

    default_scope = "none"
    default_ban = timedelta(0)


class LaunchRefused(CapacityError):
    """The request is wrong for this region (image, subnet, parameter): no retry of it can succeed."""

    default_scope = "region"
    default_ban = timedelta(hours=1)


class UnknownLaunchError(CapacityError):
    """A code that no table knows: the pool is set aside and the cloud's words are kept."""

    default_ban = timedelta(minutes=10)
