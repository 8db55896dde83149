"""What can be said of a region of Azure; needs no SDK."""

from spotferry.providers.opening import CloudSettings, Setting

_IN_GROUP = r"(?i:/subscriptions/[^/\s]+/resourceGroups/[^/\s]+/providers)"

SETTINGS = CloudSettings(
    region=r"[a-z]+[0-9]?",
    region_example="westeurope",
    settings=(
        Setting(
            "--resource-group",
            "resource_group",
            "Name of the resource group that machines are made in.",
            r"[-\w.()]{1,90}",
            required=True,
        ),
        Setting(
            "--subnet-id",
            "subnet_id",
            "Resource id of the subnet: /subscriptions/.../virtualNetworks/NAME/subnets/NAME.",
            _IN_GROUP + r"(?i:/Microsoft\.Network/virtualNetworks/[^/\s]+/subnets/[^/\s]+)",
            required=True,
        ),
        Setting(
            "--identity-id",
            "identity_id",
            "Resource id of the machines' user-assigned identity; none: machines have no identity.",
            _IN_GROUP + r"(?i:/Microsoft\.ManagedIdentity/userAssignedIdentities/[^/\s]+)",
        ),
        Setting("--public-ip", "public_ip", "`no` where the subnet has a way out of its own.", r"yes|no"),
    ),
    image=r"[^:/\s]+:[^:/\s]+:[^:/\s]+:[^:/\s]+|/subscriptions/\S+",
    image_example="Canonical:ubuntu-24_04-lts:server:latest",
)
