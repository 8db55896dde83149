"""What can be said of a region of Paperspace; needs no SDK."""

from spotferry.providers.opening import CloudSettings, Setting

SETTINGS = CloudSettings(
    region=r"[A-Z]{2,3}[0-9]",
    region_example="NY2",
    settings=(
        Setting("--private-network", "network_id", "Id of the private network that machines join.", r"[A-Za-z0-9]+"),
    ),
    image=r"[A-Za-z0-9-]+",
    image_example="t0nspur5",
)
