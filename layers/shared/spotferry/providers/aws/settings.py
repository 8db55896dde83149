"""What can be said of a region of AWS; needs no SDK."""

from spotferry.providers.opening import CloudSettings, Setting

SETTINGS = CloudSettings(
    region=r"[a-z]{2}(-[a-z]+)+-[0-9]",
    region_example="us-west-2",
    settings=(
        Setting(
            "--subnet",
            "subnet:",
            "ZONE=SUBNET, once a zone; zones without one are not used, none at all: the account's default network.",
            r"subnet-[0-9a-f]{8,17}",
            by_zone=True,
        ),
        Setting(
            "--security-group", "security_group_id", "The machines' security group (sg-...).", r"sg-[0-9a-f]{8,17}"
        ),
        Setting(
            "--instance-profile",
            "instance_profile_arn",
            "ARN of the machines' instance profile.",
            r"arn:[a-z-]+:iam::[0-9]{12}:instance-profile/\S+",
        ),
    ),
    image=r"ami-[0-9a-f]{8,17}",
    image_example="ami-0123456789abcdef0",
)
