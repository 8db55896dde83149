"""Which template a machine boots."""

from datetime import timedelta

import pytest

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.learned import FRESH_FOR
from spotferry.providers.paperspace.api import Json
from spotferry.providers.paperspace.templates import Templates
from spotferry.types.errors import LaunchRefused, ProviderUnavailable
from tests.unit.providers.paperspace.rig import NOW, ScriptedApi, an_offer, page

OS, CUSTOM = ("GET", "/os-templates"), ("GET", "/custom-templates")
NOTHING_SET = RegionSettings(provider="paperspace", region="NY2")


def listed(template_id: str, name: str, system: str, size: int | None = 50, **types: bool) -> Json:
    """A template as the API lists it."""
    available = [{"machineTypeLabel": label, "isAvailable": is_it} for label, is_it in types.items()]
    return {
        "id": template_id,
        "name": name,
        "operatingSystemLabel": system,
        "defaultSizeGb": size,
        "availableMachineTypes": available,
    }


ALL = page(
    listed("t20", "Ubuntu 20.04 Server", "Ubuntu 20.04"),
    listed("t24", "Ubuntu 24.04 Server", "Ubuntu 24.04", 100, C4=True, P4000=False),
    listed("t22", "Ubuntu 22.04 Server", "Ubuntu 22.04", None),
    listed("tml", "ML-in-a-Box", "Ubuntu 22.04", 50, C4=False, P4000=True),
    listed("twin", "Windows 10", "Windows Server 2019"),
)
MINE = page(listed("tmine", "mine", "Debian", 250))


def api() -> ScriptedApi:
    """A cloud with these templates."""
    return ScriptedApi({OS: [ALL], CUSTOM: [MINE]})


def test_the_newest_ubuntu_that_runs_on_the_type() -> None:
    """A plain machine boots the newest release, and one that the release is not for the next one."""
    templates, calls = Templates(lambda: NOW), api().begin("NY2")
    chosen = templates.resolve(calls, NOTHING_SET, an_offer("C4"), "")
    assert (chosen.template_id, chosen.size_gb) == ("t24", 100)
    assert templates.resolve(calls, NOTHING_SET, an_offer("C5"), "").template_id == "t22"


def test_a_gpu_wants_its_drivers() -> None:
    """With a GPU a template that has drivers wins over a newer one without; where there is none, any Ubuntu serves."""
    templates, calls = Templates(lambda: NOW), api().begin("NY2")
    assert templates.resolve(calls, NOTHING_SET, an_offer("P4000", gpus=1), "").template_id == "tml"
    assert templates.resolve(calls, NOTHING_SET, an_offer("A4000", gpus=1), "").template_id == "t22"


def test_settings_and_jobs_may_name_one() -> None:
    """The region's override beats the newest, the job's own beats both; it may be a custom template."""
    templates, calls = Templates(lambda: NOW), api().begin("NY2")
    settings = RegionSettings(provider="paperspace", region="NY2", image_ids={"x86_64": "t20", "x86_64/gpu": "tml"})
    assert templates.resolve(calls, settings, an_offer("C4"), "").template_id == "t20"
    assert templates.resolve(calls, settings, an_offer("C4", gpus=1), "").template_id == "tml"
    own = templates.resolve(calls, settings, an_offer("C4"), "tmine")
    assert (own.template_id, own.size_gb) == ("tmine", 250)


def test_a_template_that_is_not_there() -> None:
    """The job's own is its own trouble; one that settings name, or none at all, closes the type's family."""
    templates, calls = Templates(lambda: NOW), api().begin("NY2")
    with pytest.raises(LaunchRefused, match="no template tgone") as own:
        templates.resolve(calls, NOTHING_SET, an_offer("C4"), "tgone")
    assert own.value.scope == "none"
    settings = RegionSettings(provider="paperspace", region="NY2", image_ids={"x86_64": "tgone"})
    with pytest.raises(LaunchRefused) as named:
        templates.resolve(calls, settings, an_offer("C4"), "")
    assert named.value.scope == "family"
    empty = ScriptedApi({OS: [page(listed("twin", "Windows 10", "Windows"))]})
    with pytest.raises(LaunchRefused, match="no template with Ubuntu for C4"):
        Templates(lambda: NOW).resolve(empty.begin("NY2"), NOTHING_SET, an_offer("C4"), "")


def test_templates_are_read_once_an_hour() -> None:
    """What was read is kept for an hour, and read again after it."""
    late = timedelta()
    source = api()
    templates = Templates(lambda: NOW + late)
    for _ in range(3):
        templates.resolve(source.begin("NY2"), NOTHING_SET, an_offer("C4"), "")
    assert source.calls() == [OS]
    late = FRESH_FOR
    templates.resolve(source.begin("NY2"), NOTHING_SET, an_offer("C4"), "")
    assert source.calls() == [OS, OS]


def test_a_template_without_an_id_decides_nothing() -> None:
    """A list that is not what the API promises is no list."""
    broken = ScriptedApi({OS: [page({"name": "Ubuntu 22.04"})]})
    with pytest.raises(ProviderUnavailable, match="'id'"):
        Templates(lambda: NOW).resolve(broken.begin("NY2"), NOTHING_SET, an_offer("C4"), "")
