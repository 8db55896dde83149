"""Job files as people write them are read; what is wrong with one is said with key and line."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotferry.types import InvalidJobFile, JobFile, init_job_file, read_job_file

TASK = "task:\n  run: ls\n"


def test_a_whole_job_file_is_read() -> None:
    """Every key that is built ends in the field of its name."""
    text = """
work_dir: "work_dir"
containerized: false
name: nightly
project: vision
labels: {team: "a b", tier: 2}
env:
  VERSION: 1.10
  DEBUG: true
secrets: [HF_TOKEN]
machine_image: ami-0abc
outputs: ["out/*.bin", log.txt]
instance_specs:
  instance_type: m5.large
  memory_gb: 16
  cpu_cores: "4"
  vram_gb: 0.5
  gpu: nvidia
  max_price_usd_hour: 0.2
  gpu_count: 1
  arch: arm64
  disk_gb: 100
  providers: [aws]
  regions: us-east-1
  spot: false
setup:
  run: pip install tqdm
task:
  run:
    - python3 train.py
    - |
      for i in 1 2; do
        echo $i
      done
restored_task:
  run: [python3 train.py --resume]
"""
    job_file = read_job_file(text, "dir/job.yml")
    later = {"post_setup", "pre_checkpoint", "post_checkpoint", "pre_restore", "post_restore", "checkpoint", "retry",
             "max_duration_hours", "max_cost_usd"}  # fmt: skip
    assert job_file.model_dump(mode="json", exclude={"instance_specs", *later}) == {
        "job_file_path": "dir/job.yml",
        "work_dir": "work_dir",
        "containerized": False,
        "setup": {"run": ["pip install tqdm"]},
        "task": {"run": ["python3 train.py", "for i in 1 2; do\n  echo $i\ndone\n"]},
        "restored_task": {"run": ["python3 train.py --resume"]},
        "name": "nightly",
        "project": "vision",
        "labels": {"team": "a b", "tier": "2"},
        "env": {"VERSION": "1.10", "DEBUG": "true"},
        "secrets": ["HF_TOKEN"],
        "machine_image": "ami-0abc",
        "outputs": ["out/*.bin", "log.txt"],
        "inputs": [],
        "objective": "price",
        "expected_hours": 0.0,
    }
    assert job_file.instance_specs.model_dump(mode="json") == {
        "instance_type": "m5.large",
        "memory_gb": 16,
        "cpu_cores": 4,
        "vram_gb": 0.5,
        "gpu": "nvidia",
        "max_price_usd_hour": 0.2,
        "gpu_count": 1,
        "arch": "arm64",
        "disk_gb": 100,
        "providers": ["aws"],
        "regions": ["us-east-1"],
        "spot": False,
    }


def test_a_run_of_one_string_is_one_line() -> None:
    """`run: ls` and `run: [ls]` are the same."""
    assert read_job_file(TASK).task.run == read_job_file("task: {run: [ls]}").task.run == ("ls",)


def test_commands_that_yaml_takes_for_something_else_stay_commands() -> None:
    """`true` and `42` in a list of lines are the words that were written."""
    assert read_job_file("task:\n  run:\n  - true\n  - 42\n  - 2020-01-01\n").task.run == ("true", "42", "2020-01-01")


def test_an_empty_section_is_no_section() -> None:
    """A key with nothing after it means its default."""
    assert read_job_file("setup:\nname:\nenv:\noutputs: []\n" + TASK) == read_job_file(TASK)


@pytest.mark.parametrize(
    "text",
    [
        '{"task": {"run": ["ls"]}}',
        '{\n\t"task": {\n\t\t"run": "ls"\n\t}\n}',
        "\ufefftask: {run: ls}",
        "task:\r\n  run: ls\r\n",
        "--- # a document\ntask: &t {run: ls}\n...\n",
    ],
)
def test_other_spellings_of_the_same_file(text: str) -> None:
    """JSON, tabs in JSON, a byte order mark, Windows line ends and document marks are all read."""
    assert read_job_file(text) == JobFile.model_validate({"task": {"run": "ls"}})


def test_an_alias_is_followed() -> None:
    """A value may be written once and used twice."""
    job_file = read_job_file("task: &same {run: ls}\nrestored_task: *same\n")
    assert job_file.restored_task == job_file.task


def test_json_escapes_of_one_character_are_joined() -> None:
    """A character outside the basic plane survives JSON's two escapes."""
    assert read_job_file('{"task": {"run": "echo \\ud83d\\ude00"}}').task.run == ("echo \U0001f600",)


def test_the_path_of_the_text_is_kept_when_no_other_is_given() -> None:
    """A stored job file knows where it came from."""
    assert read_job_file("job_file_path: a/b.yml\n" + TASK).job_file_path == "a/b.yml"
    assert read_job_file("job_file_path: a/b.yml\n" + TASK, "c.yml").job_file_path == "c.yml"


@given(st.text(max_size=60) | st.text(alphabet="ab:-[]{}&*!|>'\"%@,?# \n\t\\u0xU<~", max_size=40))
def test_no_text_does_worse_than_be_refused(text: str) -> None:
    """Whatever comes in, the answer is a job file with a task, or InvalidJobFile."""
    with contextlib.suppress(InvalidJobFile):
        assert read_job_file(text).task.run


_WORD = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)
_LINE = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30).filter(str.strip)
_SIZE = st.integers(0, 1000)


@given(
    st.builds(
        lambda **fields: fields,
        task=st.builds(lambda run: {"run": run}, st.lists(_LINE, min_size=1, max_size=3)),
        setup=st.builds(lambda run: {"run": run}, st.lists(_LINE, max_size=2)),
        name=_WORD,
        env=st.dictionaries(_WORD, _LINE, max_size=3),
        instance_specs=st.builds(
            lambda memory, cents, gpus: {"memory_gb": memory, "max_price_usd_hour": cents / 100, "gpu_count": gpus},
            _SIZE,
            _SIZE,
            _SIZE,
        ),
    )
)
def test_what_is_stored_is_read_back(fields: dict[str, object]) -> None:
    """A job file written as JSON by the broker reads as the same job file."""
    job_file = JobFile.model_validate(fields)
    assert read_job_file(job_file.model_dump_json(exclude_defaults=True)) == job_file


def test_a_file_is_read_from_its_path(tmp_path: Path) -> None:
    """`init_job_file` takes a path or its text, and says which file it read."""
    path = tmp_path / "job.yml"
    path.write_text(TASK)
    assert init_job_file(path) == init_job_file(str(path))
    assert init_job_file(path).job_file_path == str(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"task:\n  run: \xff\n", ":2: is not UTF-8"),
        ("task: {run: ls}".encode("utf-16"), "is not UTF-8"),
        (b"#" * (64 * 1024 + 1), "64 KiB"),
        (b"task:\n  runs: ls\n", ":2: task.runs: "),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    """Missing, binary, huge and wrong files are refused with their name in front."""
    path = tmp_path / "job.yml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidJobFile) as caught:
        init_job_file(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)


def test_a_directory_is_no_job_file(tmp_path: Path) -> None:
    """The commonest slip, naming the folder, is told apart."""
    with pytest.raises(InvalidJobFile, match="is a directory"):
        init_job_file(tmp_path)


@pytest.mark.parametrize("name", ["llama_server.yml", "simulate.yml"])
def test_job_files_of_the_field_are_read_as_they_are(name: str) -> None:
    """The files that people use today need no change."""
    path = Path(__file__).parents[4] / "shared" / "jobs" / name
    if not path.exists():
        pytest.skip("the collection of job files is not beside the repository")
    job_file = init_job_file(path)
    assert job_file.task.run
    assert job_file.work_dir
    assert job_file.instance_specs.max_price_usd_hour > 0
