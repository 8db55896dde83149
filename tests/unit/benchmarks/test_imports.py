"""Import times are taken in processes of their own."""

import pytest

from benchmarks import imports


def test_module_and_file_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module by name, a file by path; what does not exist yet is left out; an SDK that came along is counted."""
    subjects = (
        ("spotferry.types.base", "", 250.0),
        ("a file", "benchmarks/report.py", None),
        ("nothing", "functions/nothing/app.py", None),
    )
    monkeypatch.setattr(imports, "_SUBJECTS", subjects)
    monkeypatch.setattr(imports, "REPEATS", 1)
    monkeypatch.setattr(imports, "SDKS", ("dataclasses",))
    figures = {(m.subject, m.measure): m for m in imports.measure()}
    assert {subject for subject, _ in figures} == {
        "import spotferry.types.base",
        "import a file",
        "the first job after it",
    }
    assert figures["import spotferry.types.base", "best"].value > 0
    assert figures["import spotferry.types.base", "SDKs loaded"].verdict == "OVER"


def test_what_waits_for_the_first_job_is_told() -> None:
    """What the imports leave to the first call is no secret: it takes longer than a tenth of them."""
    took, sdks, later = imports.import_once(*imports.SUBMIT_HANDLER[:2], imports.FIRST_JOB)
    assert sdks == 0
    assert later > took / 10


def test_module_that_cannot_be_imported_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken import is an error with its reason, not a figure."""
    monkeypatch.setattr(imports, "_CHILD", "raise SystemExit('no such luck')")
    with pytest.raises(RuntimeError, match="no such luck"):
        list(imports.measure())
