"""The function's own AWS identity as a token that another cloud believes, so that no secret of that cloud is kept.

The AWS SDK is imported when a token is asked for, and not before: most clouds do without.
"""

import importlib
import os

from spotferry.types.errors import Misconfigured, ProviderError, ProviderUnavailable

_SECONDS = 300
"""How long a token is good for: it is exchanged at once."""
_BUSY = frozenset({"Throttling", "ThrottlingException", "RequestTimeout", "ServiceUnavailable", "InternalFailure"})


def aws_token(audience: str) -> str:
    """A token of AWS that says which role this process has; its subject is the role's ARN.

    The account must have outbound identity federation enabled, the role `sts:GetWebIdentityToken`.

    Args:
        audience: who is to believe it.

    Raises:
        Misconfigured: no region is named, so that no STS can be asked.
        ProviderUnavailable: STS did not answer.
        ProviderError: STS refused, with its own code.
    """
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    if not region:
        raise Misconfigured("a token of AWS needs a region to ask in: set AWS_REGION")
    exceptions = importlib.import_module("botocore.exceptions")
    session = importlib.import_module("botocore.session").get_session()
    try:
        # Its global endpoint does not know this call.
        answer = session.create_client("sts", region_name=region).get_web_identity_token(
            Audience=[audience], DurationSeconds=_SECONDS, SigningAlgorithm="RS256"
        )
    except exceptions.ClientError as error:
        code, message = str(error.response["Error"].get("Code")), str(error.response["Error"].get("Message"))
        kind = ProviderUnavailable if code in _BUSY else ProviderError
        raise kind(code, f"no token of AWS for {audience}: {message}", region) from error
    except exceptions.BotoCoreError as error:
        raise ProviderUnavailable(type(error).__name__, f"no token of AWS for {audience}: {error}", region) from error
    return str(answer["WebIdentityToken"])
