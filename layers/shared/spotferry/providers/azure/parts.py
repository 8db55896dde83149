"""What a machine leaves behind where Azure did not delete it with the machine: interface, address, disk."""

from functools import partial

from azure.core.rest import HttpRequest

from spotferry.providers.azure.api import Calls, Connection
from spotferry.providers.azure.errors import NotThere, missing_or_error

PARTS = (
    ("Microsoft.Network/networkInterfaces", "nic", "2023-11-01"),
    ("Microsoft.Network/publicIPAddresses", "ip", "2023-11-01"),
    ("Microsoft.Compute/disks", "disk", "2023-10-02"),
)
"""Kind, the end of its name, and the version of the API that deletes it; an address is freed by its interface's end."""


def delete_parts(calls: Calls, group: str, name: str) -> None:
    """Order the end of all that a machine which is gone may have left; what is not there is no error.

    Raises:
        ProviderError: a part could not be ordered to end, perhaps since another is still about to: try again later.
    """
    for kind, end, version in PARTS:
        path = f"/subscriptions/{calls.connection.subscription}/resourceGroups/{group}/providers/{kind}/{name}-{end}"
        try:
            calls.ask(partial(_delete, path, version), missing_or_error)
        except NotThere:
            continue


def _delete(path: str, version: str, connection: Connection) -> None:
    connection.send(HttpRequest("DELETE", path, params={"api-version": version}))
