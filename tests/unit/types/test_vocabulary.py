"""The seed's names, keys and meanings are all here."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import spotferry.types
from spotferry.types import (
    INSTANCE_STATES,
    PROVIDER_NAMES,
    CapacityError,
    CedanaCluster,
    CheckpointReason,
    Commands,
    GpuInfo,
    Instance,
    InvalidInput,
    Job,
    JobState,
    MetaState,
    SerializedInstance,
    TryNextZone,
    UserCommands,
    UserInstanceSpecs,
)

INSTANCE_JSON = {
    "ID": 7,
    "CreatedAt": "2024-01-02T03:04:05Z",
    "UpdatedAt": "2024-01-02T03:04:06Z",
    "DeletedAt": None,
    "allocated_id": "i-0abc",
    "provider": "aws",
    "InstanceType": "g4dn.xlarge",
    "AcceleratorName": "T4",
    "AcceleratorCount": 1,
    "vCPUs": 4.0,
    "MemoryGiB": 16.0,
    "GPU": "{'Gpus': [{'Name': 'T4', 'Manufacturer': 'NVIDIA', 'Count': 1, 'MemoryInfo': {'SizeInMiB': 16384}}],"
    " 'TotalGpuMemoryInMiB': 16384}",
    "Region": "us-east-1",
    "AvailabilityZone": "us-east-1a",
    "Price": 0.1578,
    "ip_addr": "10.0.0.1",
    "state": "running",
}
JOB_JSON = {
    "ID": 1,
    "CreatedAt": "2024-01-02T03:04:05Z",
    "UpdatedAt": "2024-01-02T03:04:05Z",
    "DeletedAt": None,
    "job_id": "j-1",
    "job_file_path": "/home/me/job.yml",
    "instances": '[{"instance_id":"a"},{"instance_id":"b"}]',
    "state": "RUNNING",
    "checkpointed": True,
    "last_checkpointed_at": "2024-01-02T03:10:00Z",
    "bucket": "spotferry",
}


def test_every_name_of_the_seed_is_importable() -> None:
    """Who knows the seed finds its names in one module, and all that is promised exists."""
    names = (
        "CapacityError CedanaCluster CheckpointReason Commands GPU GpuInfo Instance Job JobFile init_job_file MetaState"
    )
    names += " PricingModel Provider ProviderEvent SerializedInstance UserCommands UserInstanceSpecs"
    assert set(names.split()) <= set(spotferry.types.__all__)
    assert all(hasattr(spotferry.types, name) for name in spotferry.types.__all__)


def test_states_and_providers_have_the_seeds_numbers_and_order() -> None:
    """Numbers stored by the seed mean the same here."""
    assert dict(INSTANCE_STATES) == {"pending": 0, "running": 1, "shutting-down": 2, "terminated": 3, "stopping": 4}
    assert PROVIDER_NAMES == ("aws", "gcp", "azure", "paperspace")
    assert [r.value for r in CheckpointReason] == ["instance_termination", "job_termination", "heartbeat"]


def test_an_instance_round_trips_with_the_seeds_json() -> None:
    """Exactly the seed's keys come out, numbers as numbers."""
    instance = Instance.model_validate_json(json.dumps(INSTANCE_JSON))
    assert instance.price == Decimal("0.1578")
    assert json.loads(instance.model_dump_json(by_alias=True)) == INSTANCE_JSON


def test_our_id_and_the_tag_stay_out_of_the_json() -> None:
    """What the seed hides is hidden."""
    text = Instance(cedana_id="secret-id", tag="secret-tag").model_dump_json(by_alias=True)
    assert "secret" not in text


def test_gpus_are_read_from_json_and_from_python_text() -> None:
    """Price lists hold either; both give the same GPUs."""
    from_python = Instance.model_validate(INSTANCE_JSON).get_gpus()
    as_json = from_python.model_dump_json(by_alias=True)
    assert Instance(gpus=as_json).get_gpus() == from_python
    assert (from_python.gpus[0].manufacturer, from_python.total_gpu_memory_in_mib) == ("NVIDIA", 16384)


@pytest.mark.parametrize(
    "text", ["", "  ", "T4", "[1]", "{'Gpus': 3}", "{'Gpus': [", "__import__('os')", "\0", "(" * 9999, "1e999", "null"]
)
def test_malformed_gpu_text_gives_no_gpus(text: str) -> None:
    """A bad row of a price list is a machine without a GPU, never an exception."""
    assert Instance(gpus=text).get_gpus() == GpuInfo()


@given(st.text(max_size=50))
def test_no_gpu_text_raises(text: str) -> None:
    """Whatever the text, the answer is a GpuInfo."""
    assert isinstance(Instance(gpus=text).get_gpus(), GpuInfo)


_TIMES = st.none() | st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (hypothesis wants naive bounds)


@given(
    st.builds(
        Instance,
        created_at=_TIMES,
        deleted_at=_TIMES,
        instance_type=st.text(max_size=9),
        vcpus=st.floats(0, 999),
        memory_gib=st.floats(0, 9999),
        price=st.decimals(0, 1000, places=6),
        state=st.sampled_from(sorted(INSTANCE_STATES)),
    )
)
def test_any_instance_survives_its_json(instance: Instance) -> None:
    """Nothing is lost or rounded on the way through JSON."""
    assert Instance.model_validate_json(instance.model_dump_json(by_alias=True)) == instance


def test_a_job_round_trips_with_the_seeds_json() -> None:
    """The seed's keys are read and written under their names."""
    job = Job.model_validate_json(json.dumps(JOB_JSON))
    written = json.loads(job.model_dump_json(by_alias=True))
    assert {key: written[key] for key in JOB_JSON} == JOB_JSON


def test_instances_are_appended_to_the_jobs_text() -> None:
    """The list of references is the seed's JSON text, oldest first; the job itself is not changed."""
    job = Job(job_id="j")
    longer = job.append_instance("a").append_instance('b"')
    assert longer.get_instance_ids() == [SerializedInstance(instance_id="a"), SerializedInstance(instance_id='b"')]
    assert longer.instances == '[{"instance_id":"a"},{"instance_id":"b\\""}]'
    assert job.get_instance_ids() == []


@pytest.mark.parametrize("text", ["[", "{}", "[1]", '[{"id":"a"}]'])
def test_a_broken_list_of_instances_is_said(text: str) -> None:
    """Text that is no list of references is an error that names the field."""
    with pytest.raises(InvalidInput) as caught:
        Job(instances=text).get_instance_ids()
    assert caught.value.problems[0].field == "instances"


@given(st.lists(st.text(min_size=1, max_size=10), max_size=5))
def test_any_ids_come_back_in_order(ids: list[str]) -> None:
    """What was appended is what is there."""
    job = Job()
    for instance_id in ids:
        job = job.append_instance(instance_id)
    assert [reference.instance_id for reference in job.get_instance_ids()] == ids


def test_a_record_of_a_later_version_is_read() -> None:
    """A stored field that this version does not know is ignored, an unknown state is not."""
    assert Job.model_validate({"job_id": "j", "colour": "red"}).job_id == "j"
    with pytest.raises(ValidationError):
        Job.model_validate({"state": "SLEEPING"})


def test_final_states() -> None:
    """Three states are final, and only they."""
    assert {s for s in JobState if s.is_final} == {JobState.DONE, JobState.FAILED, JobState.CANCELLED}


def test_a_capacity_error_says_code_message_and_region() -> None:
    """The seed's three fields are attributes, and they are in the text."""
    error = TryNextZone("InsufficientInstanceCapacity", "none left", "us-east-1")
    assert isinstance(error, CapacityError)
    assert (error.code, error.message, error.region) == ("InsufficientInstanceCapacity", "none left", "us-east-1")
    assert str(error) == "InsufficientInstanceCapacity: none left (us-east-1)"


def test_user_commands_have_the_seeds_keys() -> None:
    """Lines around a job are given under the seed's keys; one string is one line."""
    keys = ("setup", "post_setup", "pre_checkpoint", "post_checkpoint", "pre_restore", "post_restore")
    commands = UserCommands.model_validate({key: {"run": f"echo {key}"} for key in keys})
    assert [getattr(commands, key) for key in keys] == [Commands(run=(f"echo {key}",)) for key in keys]
    assert tuple(UserCommands.model_fields) == keys


def test_specs_have_the_seeds_keys() -> None:
    """The machine is asked for under the seed's keys."""
    keys = ["instance_type", "memory_gb", "cpu_cores", "vram_gb", "gpu", "max_price_usd_hour"]
    assert list(UserInstanceSpecs.model_fields)[:6] == keys


def test_a_notice_has_the_seeds_keys() -> None:
    """MetaState and ProviderEvent are read and written under the seed's keys."""
    seed = {
        "provider_event": {
            "instance_id": "i-1",
            "fault_code": "spot-interruption",
            "marked_for_termination": True,
            "termination_time": 1700000000,
        },
        "checkpoint_reason": "instance_termination",
    }
    assert MetaState.model_validate(seed).model_dump(mode="json", by_alias=True) == seed


def test_a_cluster_is_a_set_of_instances() -> None:
    """A cluster is read and written under the seed's keys."""
    seed = {"cluster_id": "3e1b", "workers": [INSTANCE_JSON]}
    written = CedanaCluster.model_validate(seed).model_dump(mode="json", by_alias=True)
    assert {key: written[key] for key in seed} == seed


def test_a_time_without_a_zone_is_refused() -> None:
    """A record never holds a time that could mean two moments."""
    with pytest.raises(ValidationError):
        Job.model_validate({"created_at": "2024-01-02T03:04:05"})
