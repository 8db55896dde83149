"""The training example: it saves on a signal, resumes from the newest state, and loses nothing by it."""

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[3] / "examples" / "torch-style" / "work" / "train.py"


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The program, in a directory of its own."""
    spec = importlib.util.spec_from_file_location("train_example", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGUSR1)
    yield module
    signal.signal(signal.SIGUSR1, before)


def run(train: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Run it like a command, fast."""
    monkeypatch.setattr(sys, "argv", ["train.py", "--seconds", "0", *arguments])
    train.main()


def test_interrupted_training_ends_like_one_that_was_not(
    train: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The same weights to the last digit, whatever the step at which it was stopped and resumed."""
    run(train, monkeypatch, "--steps", "900", "--save-every", "100")
    whole = json.loads(Path("model.json").read_text())
    assert whole == pytest.approx(train.TRUE_WEIGHTS, abs=0.05)
    (tmp_path / "second").mkdir()
    monkeypatch.chdir(tmp_path / "second")
    for steps in ("250", "610", "900"):
        run(train, monkeypatch, "--steps", steps, "--save-every", "100")
    assert json.loads(Path("model.json").read_text()) == whole
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("from")][1:] == [
        "from step 0",
        "from step 200",
        "from step 600",
    ]


def test_the_signal_saves_at_the_next_step(train: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is there is whole; older ones are tidied away."""
    trainer = train.Trainer
    step = trainer.train

    def signalled(self: object) -> float:
        if self.step in {10, 20, 30, 40}:  # type: ignore[attr-defined]  # the example's own
            os.kill(os.getpid(), signal.SIGUSR1)
        loss: float = step(self)
        return loss

    monkeypatch.setattr(trainer, "train", signalled)
    run(train, monkeypatch, "--steps", "45", "--save-every", "1000")
    assert [path.name for path in train.saved()] == ["step-21", "step-31", "step-41"]
    assert {file.name for file in Path("checkpoints/step-41").iterdir()} == {
        "model.json",
        "optimizer.json",
        "random.json",
    }


def test_none_of_our_names_is_in_it() -> None:
    """Scripts that save themselves run as they are."""
    text = FILE.read_text().lower()
    assert "spotferry" not in text
