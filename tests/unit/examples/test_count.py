"""The counting example: what the demonstration rests on."""

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[3] / "examples" / "count" / "count.py"


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program, counting fast and in a directory of its own."""
    spec = importlib.util.spec_from_file_location("count_example", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STEP_SECONDS", 0.001)
    monkeypatch.setattr(module, "COUNT", tmp_path / "count")
    monkeypatch.setenv("COUNT_TO", "4")
    before = signal.getsignal(signal.SIGTERM)
    yield module
    signal.signal(signal.SIGTERM, before)


def test_counts_to_the_end_and_never_starts_over(count: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step once; run again, there is nothing left to do."""
    count.main()
    count.main()
    assert capsys.readouterr().out.splitlines() == [f"step {n} of 4" for n in range(1, 5)]


def test_sigterm_ends_after_the_step(
    count: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that was going on is finished and kept; the next run goes on behind it."""
    keep = count.keep

    def told_at_two(step: int) -> None:
        if step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        keep(step)

    monkeypatch.setattr(count, "keep", told_at_two)
    count.main()
    assert capsys.readouterr().out.splitlines() == ["step 1 of 4", "step 2 of 4"]
    count.main()
    assert capsys.readouterr().out.splitlines() == ["step 3 of 4", "step 4 of 4"]
