"""What is wrong with a job file is said with key, line and what would be right."""

import pytest

from spotferry.types import InvalidJobFile, read_job_file

TASK = "task:\n  run: ls\n"


def refusal(text: str) -> InvalidJobFile:
    """The error that a text is refused with."""
    with pytest.raises(InvalidJobFile) as caught:
        read_job_file(text, "job.yml")
    return caught.value


def only_problem(text: str) -> tuple[str, int | None, str]:
    """Field, line and message of the one thing that is wrong."""
    problems = refusal(text).problems
    assert len(problems) == 1, problems
    return problems[0].field, problems[0].line, problems[0].message


@pytest.mark.parametrize(
    ("text", "field", "line", "words"),
    [
        ("", "", None, "is empty"),
        ("# nothing\n", "", None, "is empty"),
        ("null\n", "", None, "is empty"),
        ("- task\n", "", 1, "a list"),
        ("just words\n", "", 1, "'just words'"),
        ("task:\n\trun: ls\n", "", 2, "tab"),
        ("task: {run: ls}\n---\ntask: {run: ls}\n", "", 2, "second document"),
        ("task: [\n", "", 2, "expected"),
        ("task:\n  run: echo a: b\n", "", 2, "quote"),
        ("task: *nowhere\n", "", 1, "undefined alias"),
        ("task:\n  run: ls\0\n", "", 2, "U+0000"),
        ("task:\n  run: !!python/object:os.system ls\n", "", 2, "tag"),
        ("task: !mine {run: ls}\n", "", 1, "tag"),
        ("? [a]\n: b\n", "", 1, "a key is a word"),
        ("a: &x 1\nb: &x 2\n", "", None, "anchor"),
        ('task: {run: "\\ud83d"}\n', "", 1, "half of a character"),
        ("name: x\n", "task.run", 1, "is missing"),
        ("name: x\ntask:\n", "task.run", 2, "is missing"),
        ("task: {}\n", "task.run", 1, "is missing"),
        ("task: {run: []}\n", "task.run", 1, "is missing"),
        ("task:\n  run: '  '\n", "task.run", 2, "blank"),
        ("task:\n  run:\n  - ls\n  -\n", "task.run.1", 4, "blank"),
        ("task:\n  run:\n  - echo a: b\n", "task.run.0", 3, "quotes around the whole line"),
        ("task:\n  run: {a: b}\n", "task.run", 2, "a list of lines"),
        ('task: {run: "a\\0b"}\n', "task.run", 1, "NUL"),
        ("task: ls\n", "task", 1, "mapping with `run:`"),
        ("task: [ls]\n", "task", 1, "mapping with `run:`"),
        ("task:\n  run: ls\n  runs: x\n", "task.runs", 3, "did you mean run?"),
        (TASK + "run: ls\n", "run", 3, "did you mean task.run?"),
        (TASK + "taks: {}\n", "taks", 3, "did you mean task?"),
        (TASK + "memory_gb: 3\n", "memory_gb", 3, "did you mean instance_specs.memory_gb?"),
        (TASK + "zzzz: 3\n", "zzzz", 3, "known here: "),
        (TASK + "<<: {name: x}\n", "<<", 3, "not a key"),
        (TASK + "instance_specs: {memory: 3}\n", "instance_specs.memory", 3, "did you mean memory_gb?"),
        (TASK + "instance_specs: {work_dir: x}\n", "instance_specs.work_dir", 3, "did you mean work_dir?"),
        (TASK + "name: a\nname: b\n", "name", 4, "given twice, first in line 3"),
        (TASK + "env: {A: 1, A: 2}\n", "env.A", 3, "given twice"),
        (TASK + "instance_specs: 3\n", "instance_specs", 3, "mapping"),
        (TASK + "instance_specs:\n  memory_gb: lots\n", "instance_specs.memory_gb", 4, "a number, not 'lots'"),
        (TASK + "instance_specs: {memory_gb: .inf}\n", "instance_specs.memory_gb", 3, "a number"),
        (TASK + "instance_specs: {memory_gb: -1}\n", "instance_specs.memory_gb", 3, "from 0 to"),
        (TASK + "instance_specs: {memory_gb: 1e400}\n", "instance_specs.memory_gb", 3, "a number"),
        (TASK + "instance_specs: {memory_gb: true}\n", "instance_specs.memory_gb", 3, "a number"),
        (TASK + "instance_specs: {cpu_cores: [4]}\n", "instance_specs.cpu_cores", 3, "not a list"),
        (TASK + "instance_specs: {gpu_count: 1.5}\n", "instance_specs.gpu_count", 3, "whole number"),
        (TASK + "instance_specs: {disk_gb: 16385}\n", "instance_specs.disk_gb", 3, "16384"),
        (TASK + "instance_specs: {gpu: true}\n", "instance_specs.gpu", 3, "must be text"),
        (TASK + "instance_specs: {arch: amd64}\n", "instance_specs.arch", 3, "did you mean x86_64?"),
        (TASK + "instance_specs: {arch: 86}\n", "instance_specs.arch", 3, "x86_64 or arm64"),
        (TASK + "instance_specs: {spot: maybe}\n", "instance_specs.spot", 3, "true, false or fallback"),
        (TASK + "instance_specs: {spot: falback}\n", "instance_specs.spot", 3, "did you mean fallback?"),
        (TASK + 'instance_specs: {spot: "true"}\n', "instance_specs.spot", 3, "not 'true'"),
        (TASK + "instance_specs: {spot: [true]}\n", "instance_specs.spot", 3, "not a list"),
        (TASK + "instance_specs: {expected_hours: 3}\n", "instance_specs.expected_hours", 3, "mean expected_hours?"),
        (TASK + "containerized: 3\n", "containerized", 3, "true or false"),
        (TASK + "objective: cost\n", "objective", 3, "price or expected_cost, not 'cost'"),
        (TASK + "expected_hours: 8761\n", "expected_hours", 3, "from 0 to 8760"),
        (TASK + "instance_specs: {providers: [aws, azur]}\n", "instance_specs.providers.1", 3, "did you mean azure?"),
        (TASK + "instance_specs: {providers: [aws, aws]}\n", "instance_specs.providers.1", 3, "twice"),
        (TASK + "instance_specs: {regions: [us east]}\n", "instance_specs.regions.0", 3, "region"),
        (TASK + "instance_specs: {regions: {a: b}}\n", "instance_specs.regions", 3, "list"),
        (TASK + "env: [A=1]\n", "env", 3, "mapping"),
        (TASK + "env: {1A: x}\n", "env.1A", 3, "name"),
        (TASK + "env: {A: [x]}\n", "env.A", 3, "one value"),
        (TASK + "env:\n  A:\n", "env.A", 4, 'write ""'),
        (TASK + 'env: {A: "x\\0"}\n', "env.A", 3, "NUL"),
        (TASK + "secrets: [a-b]\n", "secrets.0", 3, "name"),
        (TASK + "env: {A: 1}\nsecrets: [A]\n", "secrets", 4, "in env as well"),
        (TASK + "labels: {a b: x}\n", "labels.a b", 3, "name"),
        (TASK + f"labels: {{a: {'x' * 64}}}\n", "labels.a", 3, "63"),
        (TASK + f"labels: {{{', '.join(f'a{i}: x' for i in range(21))}}}\n", "labels", 3, "limit is 20"),
        (TASK + f"name: {'x' * 64}\n", "name", 3, "63"),
        (TASK + "project: $(rm)\n", "project", 3, "letters"),
        (TASK + "name: [x]\n", "name", 3, "must be text"),
        (TASK + 'work_dir: "a\\nb"\n', "work_dir", 3, "one line"),
        (TASK + f"work_dir: data/{'é' * 128}/\n", "work_dir", 3, "more than 255 bytes"),
        (TASK + "machine_image: 'ami-1; rm -rf /'\n", "machine_image", 3, "not the name of an image"),
        (TASK + "outputs: [/etc/passwd]\n", "outputs.0", 3, "absolute"),
        (TASK + "outputs: [~/x]\n", "outputs.0", 3, "absolute"),
        (TASK + "outputs: a/../../b\n", "outputs", 3, "leaves the work directory"),
        (TASK + "outputs: ['']\n", "outputs.0", 3, "blank"),
        (TASK + "outputs: [logs/**.txt]\n", "outputs.0", 3, "'logs/**.txt' has ** beside other characters"),
        (TASK + "outputs: ['***']\n", "outputs.0", 3, "** stands for any directories (logs/**/*.txt)"),
        (TASK + "outputs: ['**x/a']\n", "outputs.0", 3, "* for part of a name"),
        (TASK + f"outputs: a/{'é' * 128}/b\n", "outputs", 3, "more than 255 bytes"),
        (TASK + f"outputs: {'a/' * 100}b\n", "outputs", 3, "has 101 names; the limit is 100"),
        (TASK + f"outputs: [{', '.join(f'a{i}' for i in range(101))}]\n", "outputs", 3, "limit is 100"),
    ],
)
def test_what_is_wrong_is_named_with_key_and_line(text: str, field: str, line: int | None, words: str) -> None:
    """One fault is one problem: its dotted key, its line, and what would be right."""
    found = only_problem(text)
    assert found[:2] == (field, line)
    assert words in found[2]


def test_what_is_not_built_is_never_ignored() -> None:
    """A value that the broker would not obey is refused as "not yet"."""
    found = only_problem(TASK + "containerized: true\n")
    assert found[:2] == ("containerized", 3)
    assert "not yet" in found[2]


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    """A person mends a file in one go: each problem is a line with file, line and key."""
    error = refusal("naem: x\ntask:\n  run: ''\nsecrets: [1x]\n")
    assert str(error).splitlines() == [
        "job.yml:1: naem: is not a key of a job file; did you mean name?",
        "job.yml:3: task.run: is a blank line; leave it out",
        "job.yml:4: secrets.0: '1x' is not a name: letters, digits and _, no digit first",
    ]


def test_aliases_cannot_make_a_small_file_huge() -> None:
    """A bomb of aliases is refused by the number of values it stands for."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "10000 values" in only_problem("\n".join(levels))[2]


@pytest.mark.parametrize("text", ["[" * 500 + "]" * 500, "[" * 30_000, "a: &a [*a]\n"])
def test_depth_has_a_limit(text: str) -> None:
    """Deep or endless nesting is refused, not followed."""
    assert only_problem(text)[0] == ""


def test_size_has_a_limit() -> None:
    """A text over 64 KiB is refused before it is parsed; one at the limit is read."""
    padded = TASK + "#" * (64 * 1024 - len(TASK))
    assert read_job_file(padded).task.run == ("ls",)
    assert "64 KiB" in only_problem(padded + "#")[2]
