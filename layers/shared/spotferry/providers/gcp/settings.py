"""What can be said of a region of Google Cloud; needs no SDK."""

from spotferry.providers.opening import CloudSettings, Setting

_NAME = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
_PROJECT = r"projects/[a-z0-9.:-]+"

SETTINGS = CloudSettings(
    region=r"[a-z]+(-[a-z]+)+[0-9]+",
    region_example="europe-west4",
    settings=(
        Setting(
            "--network",
            "network",
            "VPC network, by name or path; none, and no subnetwork: the project's network `default`.",
            rf"({_PROJECT}/global/networks/)?{_NAME}",
        ),
        Setting(
            "--subnetwork",
            "subnetwork",
            "Subnetwork, by name or path; a network in custom mode needs one.",
            rf"({_PROJECT}/regions/{_NAME}/subnetworks/)?{_NAME}",
        ),
        Setting(
            "--service-account",
            "service_account",
            "Email of the machines' service account; none: machines have no identity.",
            r"[^@\s]+@[^@\s]+",
        ),
        Setting("--external-ip", "external_ip", "`no` where Cloud NAT is the machines' way out.", r"yes|no"),
        Setting("--network-tags", "network_tags", "Network tags of the machines, with commas.", rf"{_NAME}(,{_NAME})*"),
    ),
    image=rf"({_PROJECT}/global/images/(family/)?)?{_NAME}",
    image_example="projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64",
)
