"""What a machine is born with: its id, its agent's token and the user data that starts the agent."""

import hashlib
import hmac
import json
import re
import shlex

from spotferry.types.errors import Misconfigured

USER_DATA_LIMIT_BYTES = 12 * 1024
"""No cloud takes less than this, base64 included."""

FETCH_SECONDS = 600
"""How long a machine tries to fetch its agent before it gives up and ends itself."""

_PATTERNS = {
    "broker_url": r"https?://[A-Za-z0-9.\-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/%$\-]*)?",
    "agent_sha256": r"[0-9a-f]{64}",
    "instance_id": r"[A-Za-z0-9][A-Za-z0-9\-]{0,63}",
    "token": r"[0-9a-f]{64}",
    "provider": r"[a-z0-9][a-z0-9_\-]{0,31}",
}

_FETCH = """\
import hashlib, os, sys, time, urllib.request
url, digest, path, limit = sys.argv[1:]
deadline, pause = time.monotonic() + float(limit), 1.0
while True:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            body = answer.read()
        if hashlib.sha256(body).hexdigest() == digest:
            break
        problem = "the digest differs"
    except (OSError, ValueError) as error:
        problem = str(error)
    if time.monotonic() + pause > deadline:
        sys.exit("spotferry: the agent could not be fetched: " + problem)
    time.sleep(pause)
    pause = min(pause * 2, 15.0)
with open(path + ".part", "wb") as file:
    file.write(body)
os.replace(path + ".part", path)
"""

_SCRIPT = """\
#!/bin/bash
# Starts the Spotferry agent; whatever ends it, the machine ends with it.
set -eu
umask 022
export PATH="${{PATH:-/usr/local/bin:/usr/bin:/bin}}:/usr/local/sbin:/usr/sbin:/sbin"
finish() {{
  shutdown -h now || sudo -n shutdown -h now || if [ "$(id -u)" = 0 ]; then systemctl poweroff || poweroff; fi || true
}}
trap finish EXIT
if [ -z "${{SPOTFERRY_BASE:-}}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  # The image's own upgrades begin at boot and hold the lock that setup's packages need: none begin, one that has is
  # waited for.
  {{
    mkdir -p /etc/apt/apt.conf.d
    printf '%s\\n' 'DPkg::Lock::Timeout "300";' 'APT::Periodic::Enable "0";' >/etc/apt/apt.conf.d/90spotferry
    systemctl --no-block stop apt-daily.timer apt-daily-upgrade.timer apt-daily.service
  }} || true
fi
if ! command -v python3 >/dev/null 2>&1; then
  apt-get update -q && apt-get install -yq python3 || dnf install -yq python3 || yum install -yq python3 \\
    || zypper -nq install python3 || apk add -q python3
fi
base="${{SPOTFERRY_BASE:-}}"
if [ -z "$base" ]; then
  if [ "$(id -u)" = 0 ]; then base=/var/lib/spotferry; else base="${{HOME:-/tmp}}/.spotferry"; fi
fi
mkdir -p "$base"
python3 -c {fetch} {url} {digest} "$base/agent.pyz" {seconds}
# Not a here-document on the command itself: bash would print it, token and all, if a signal ended the agent.
settings=$(cat <<'SPOTFERRY_SETTINGS'
{settings}
SPOTFERRY_SETTINGS
)
python3 -I -X utf8 "$base/agent.pyz" <<<"$settings"
"""


def instance_id(deployment: str, job_id: str, epoch: int) -> str:
    """Our id of a job's attempt: the same for the same attempt, and what the cloud takes as its idempotency token.

    At most 64 ASCII characters; letters, digits and a hyphen, so it can be a machine's name on every cloud.
    """
    digest = hashlib.sha256(f"{deployment}\n{job_id}\n{epoch}".encode()).hexdigest()
    return f"i-{digest[:40]}"


def agent_token(secret: bytes, instance_id: str, epoch: int) -> str:
    """The token of one attempt's agent: hex HMAC-SHA256 under the deployment's secret.

    Raises:
        Misconfigured: the deployment has no secret.
    """
    if not secret:
        raise Misconfigured("the secret that agents' tokens are made of is empty: set it and deploy again")
    return hmac.new(secret, f"{instance_id}\n{epoch}".encode(), hashlib.sha256).hexdigest()


def user_data(*, broker_url: str, agent_sha256: str, instance_id: str, epoch: int, token: str, provider: str) -> str:
    """The boot script of one machine; the same arguments give the same bytes, at most USER_DATA_LIMIT_BYTES of them.

    It fetches the agent from the broker, checks its digest, hands it its settings on standard input and shuts the
    machine down when the agent ends for any reason, or when it cannot be fetched within FETCH_SECONDS. A machine on
    which SPOTFERRY_BASE is set keeps everything below that directory.

    Raises:
        Misconfigured: a value is not of its form; the message names it (the token's value is never shown).
    """
    given = {
        "broker_url": broker_url,
        "agent_sha256": agent_sha256,
        "instance_id": instance_id,
        "token": token,
        "provider": provider,
    }
    _check(given, epoch)
    broker_url = broker_url.rstrip("/")
    settings = {
        "broker_url": broker_url,
        "epoch": epoch,
        "instance_id": instance_id,
        "provider": provider,
        "token": token,
    }
    script = _SCRIPT.format(
        fetch=shlex.quote(_FETCH),
        url=shlex.quote(f"{broker_url}/agent/v1/agent/{agent_sha256}"),
        digest=agent_sha256,
        seconds=FETCH_SECONDS,
        settings=json.dumps(settings, sort_keys=True),
    )
    if len(script.encode()) > USER_DATA_LIMIT_BYTES:
        raise Misconfigured(f"broker_url: it is too long for user data of {USER_DATA_LIMIT_BYTES} bytes")
    return script


def _check(given: dict[str, str], epoch: int) -> None:
    """Refuse whatever is not of its form: what is left needs no quoting, and is quoted all the same."""
    for name, value in given.items():
        if not re.fullmatch(_PATTERNS[name], value, re.ASCII):
            shown = "" if name == "token" else f" {value!r}"
            raise Misconfigured(f"user data: {name}{shown} is not of the form {_PATTERNS[name]}")
    if epoch < 1:
        raise Misconfigured(f"user data: epoch {epoch} is less than 1")
