"""Where a dumped process may go on."""

from pathlib import Path

import pytest

from spotferry.agent.fingerprint import fingerprint, mismatch

X86 = "processor\t: 0\nmodel name\t: A Fast One\nflags\t\t: sse2 fpu avx\n\nprocessor\t: 1\nflags\t\t: none\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n"
MADE_ON = {"arch": "x86_64", "kernel": "6.1.0-18", "cpu_flags": "avx fpu sse2"}


@pytest.mark.parametrize(
    ("text", "flags", "model"), [(X86, "avx fpu sse2", "A Fast One"), (ARM, "asimd fp", "0xd0c"), ("", "", "")]
)
def test_what_a_processor_can_do_is_read(tmp_path: Path, text: str, flags: str, model: str) -> None:
    """Flags of the first processor in order, on x86 and ARM alike; nothing where the system tells nothing."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(text)
    seen = fingerprint(cpuinfo)
    assert (seen["cpu_flags"], seen["cpu_model"]) == (flags, model)
    assert seen["arch"]
    assert seen["kernel"]


@pytest.mark.parametrize(
    ("here", "why"),
    [
        ({}, ""),
        ({"cpu_flags": "avx avx512f fpu sse2"}, ""),
        ({"kernel": "6.12.1"}, ""),
        ({"kernel": "6.1.2-other"}, ""),
        ({"arch": "arm64"}, "it was made on x86_64, this is arm64"),
        ({"cpu_flags": "fpu sse2"}, "this processor lacks avx"),
        ({"cpu_flags": ""}, "this processor lacks avx, fpu, sse2"),
        ({"kernel": "5.15.0"}, "it was made on kernel 6.1.0-18, this one is 5.15.0"),
    ],
)
def test_a_process_goes_on_where_all_it_may_use_is_there(here: dict[str, str], why: str) -> None:
    """More is fine, less is not: flags, kernel and architecture, each with its reason."""
    assert mismatch(MADE_ON, {**MADE_ON, **here}) == why


def test_long_lists_are_cut() -> None:
    """A reason names five flags and counts the rest."""
    made_on = {**MADE_ON, "cpu_flags": " ".join(f"f{n}" for n in range(9))}
    assert mismatch(made_on, {**MADE_ON, "cpu_flags": ""}) == "this processor lacks f0, f1, f2, f3, f4 and 4 more"


def test_a_machine_matches_itself() -> None:
    """What was made here goes on here."""
    assert mismatch(fingerprint(), fingerprint()) == ""
