"""Who speaks: an agent's call is let in only for its own, living attempt."""

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass

from spotferry.types.errors import NotFound, StaleAttempt, Unauthenticated
from spotferry.types.instance import Attempt
from spotferry.types.words import cut
from spotferry.usecases.change import ChangeJob

_BEARER = re.compile(r"Bearer ([A-Za-z0-9-]{1,64})\.([0-9a-f]{64})\.([0-9a-f]{64})")

TokenOf = Callable[[str, int], str]
"""The token of an attempt's agent, by instance id and epoch."""


@dataclass(frozen=True, slots=True)
class Authenticate:
    """Checks the token against the attempt and the key against the one that the first hello bound."""

    change: ChangeJob
    token_of: TokenOf

    def __call__(self, authorization: str, epoch: object = None, *, hello: bool = False) -> Attempt:
        """The attempt that the call speaks for.

        The call of an attempt that has ended may be the repeat of one that was saved before a crash: what that left
        owed is sent before it is refused.

        Args:
            authorization: the header as it came.
            epoch: what the body says it is; None where it says nothing.
            hello: bind the key if none is bound yet; any other call needs one that is.

        Raises:
            Unauthenticated: header, token or key are not right; the message does not say which.
            StaleAttempt: they are, but the machine is known to be gone, or the epoch is another attempt's.
        """
        said = _BEARER.fullmatch(authorization)
        if said is None:
            raise Unauthenticated("the call carries no agent's authorization")
        instance_id, token, key = said.groups()
        try:
            attempt = self.change.store.get_attempt(instance_id)
        except NotFound:
            raise Unauthenticated("the token does not open this instance") from None
        if not hmac.compare_digest(token, self.token_of(instance_id, attempt.epoch)):
            raise Unauthenticated("the token does not open this instance")
        self._check_key(attempt, hashlib.sha256(key.encode()).hexdigest(), hello=hello)
        if epoch is not None and epoch != attempt.epoch:
            raise StaleAttempt(f"attempt {instance_id} is number {attempt.epoch}, not {cut(str(epoch))}")
        if attempt.is_gone:
            self.change.send_owed(attempt.job_id)
            raise StaleAttempt(f"attempt {instance_id} has ended")
        return attempt

    def _check_key(self, attempt: Attempt, digest: str, *, hello: bool) -> None:
        bound = attempt.agent_key_sha256
        if not bound and hello and not attempt.is_gone:
            if self.change.store.bind_agent(attempt.cedana_id, digest):
                return
            bound = self.change.store.get_attempt(attempt.cedana_id).agent_key_sha256
        if not bound or not hmac.compare_digest(bound, digest):
            raise Unauthenticated("the key is not the one that this instance's agent brought")
