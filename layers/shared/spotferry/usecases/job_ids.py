"""Ids of new jobs: by chance, or the same for the same key of the same person."""

import hashlib
import secrets


def new_job_id(deployment: str, owner: str, key: str) -> str:
    """An id that no job has; with a key always the same one, so that who asks twice is found.

    Args:
        deployment: its name.
        owner: who asks.
        key: the Idempotency-Key, "" for none. One person's keys are one set, whatever they are used for.
    """
    if not key:
        return f"j-{secrets.token_hex(8)}"
    seed = f"{deployment}\n{owner}\n{key}"
    return f"j-{hashlib.sha256(seed.encode()).hexdigest()[:16]}"
