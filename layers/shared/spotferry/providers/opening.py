"""Opening a region for launches: what an operator says of it, and what is found when it is looked at.

A cloud's folder has `settings.py` (`SETTINGS`, needs no SDK) and `check.py` (`build_check`) for it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from spotferry.ports.cloud import Clock, RegionSettings
from spotferry.providers import registry
from spotferry.providers.context import no_secret
from spotferry.types.errors import InvalidInput, Misconfigured, Problem
from spotferry.types.job_file_words import nearest

_IMAGE_KEYS = ("x86_64", "arm64", "x86_64/gpu", "arm64/gpu")


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that an operator may say of a region.

    Attributes:
        option: of the command, such as `--security-group`.
        key: in `RegionSettings.network`; with `by_zone` what stands before the zone.
        help: a line for the command's help.
        pattern: what a value looks like, whole.
        required: whether nothing can be launched without it.
        by_zone: said once a zone, as ZONE=VALUE.
    """

    option: str
    key: str
    help: str
    pattern: str = r"\S+"
    required: bool = False
    by_zone: bool = False


@dataclass(frozen=True, slots=True)
class CloudSettings:
    """What can be said of the regions of one cloud.

    Attributes:
        region: what the name of a region looks like, whole.
        region_example: one.
        settings: all there are.
        image: what names an image, whole.
        image_example: one.
    """

    region: str
    region_example: str
    settings: Sequence[Setting]
    image: str
    image_example: str


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, in words; a problem keeps launches from succeeding."""

    level: Level
    what: str


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The deployment, as the check of a region sees it.

    Attributes:
        deployment: its name.
        home_region: the broker's own; "" where a region's announcements need no way home.
        clock: tells the time.
        secret: as `ProviderContext.secret`.
    """

    deployment: str
    home_region: str
    clock: Clock
    secret: Callable[[str], str] = no_secret


RegionCheck = Callable[[RegionSettings], Iterator[Finding]]
"""Looks at a region as it is set up, asking its cloud; refusals of the cloud are findings and never raised."""


def settings_of(provider: str) -> CloudSettings:
    """What can be said of this cloud's regions; loads no SDK.

    Raises:
        Misconfigured: its regions cannot be opened by settings.
    """
    if provider not in registry.with_part("settings"):
        raise Misconfigured(f"regions of {provider} cannot be opened: it has no settings in this release")
    found: CloudSettings = registry.module_of(provider, "settings").SETTINGS
    return found


def build_check(provider: str, context: CheckContext) -> RegionCheck:
    """The check of this cloud's regions; imports its SDK, and no other's.

    Raises:
        Misconfigured: it has none, or its SDK, credentials or project are not there.
    """
    if provider not in registry.with_part("check"):
        raise Misconfigured(f"regions of {provider} cannot be checked: it has no check in this release")
    check: RegionCheck = registry.module_of(provider, "check").build_check(context)
    return check


def region_settings(
    provider: str, region: str, said: Mapping[str, Sequence[str]], images: Sequence[str] = ()
) -> RegionSettings:
    """The settings of a region, as an operator said them.

    Args:
        provider: the cloud.
        region: its name there.
        said: the values of each option, by the setting's key.
        images: ARCH=NAME or ARCH/gpu=NAME each.

    Raises:
        InvalidInput: all that is wrong, by option.
        Misconfigured: see `settings_of`.
    """
    cloud = settings_of(provider)
    problems: list[Problem] = []
    if not re.fullmatch(cloud.region, region):
        example = cloud.region_example
        problems.append(Problem("REGION", f"{region!r} is not the name of a region of {provider} (such as {example})"))
    network: dict[str, str] = {}
    for setting in cloud.settings:
        values = said.get(setting.key, ())
        if setting.required and not values:
            problems.append(Problem(setting.option, f"is needed: {setting.help}"))
        network |= _read(setting, values, problems)
    image_ids = _read_images(cloud, images, problems)
    if problems:
        raise InvalidInput(problems)
    return RegionSettings(provider=provider, region=region, network=network, image_ids=image_ids)


def _read(setting: Setting, values: Sequence[str], problems: list[Problem]) -> dict[str, str]:
    read: dict[str, str] = {}
    for text in values:
        zone, sign, value = text.partition("=") if setting.by_zone else ("", "=", text)
        key = f"{setting.key}{zone}"
        if not sign or (setting.by_zone and not zone):
            problems.append(Problem(setting.option, f"{text!r} is not ZONE=VALUE"))
        elif not re.fullmatch(setting.pattern, value):
            problems.append(Problem(setting.option, f"{value!r} does not look like one: {setting.help}"))
        elif key in read:
            problems.append(Problem(setting.option, f"{zone or value!r} is given twice"))
        else:
            read[key] = value
    return read


def _read_images(cloud: CloudSettings, images: Sequence[str], problems: list[Problem]) -> dict[str, str]:
    read: dict[str, str] = {}
    for text in images:
        key, sign, name = text.partition("=")
        if not sign or key not in _IMAGE_KEYS:
            meant = nearest(key, _IMAGE_KEYS)
            hint = f"; did you mean {meant}?" if meant and meant != key else ""
            problems.append(
                Problem("--image", f"{text!r} is not ARCH=IMAGE with one of {', '.join(_IMAGE_KEYS)}{hint}")
            )
        elif not re.fullmatch(cloud.image, name):
            problems.append(Problem("--image", f"{name!r} is not the name of an image (such as {cloud.image_example})"))
        else:
            read[key] = name
    return read
