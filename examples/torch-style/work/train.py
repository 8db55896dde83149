"""Trains a small model, and saves and resumes by itself, the way training scripts do; it knows of no broker.

State goes to checkpoints/step-N, whole or not at all; at the start the newest one wins. Besides every --save-every
steps it saves when it gets SIGUSR1, as batch systems send it before they take the machine.
"""

import argparse
import json
import random
import shutil
import signal
import time
from pathlib import Path
from types import FrameType

DIRECTORY = Path("checkpoints")
KEPT = 3
TRUE_WEIGHTS = (3.0, -2.0, 0.5)


class Trainer:
    """Stochastic gradient descent on noisy samples of a linear function."""

    def __init__(self, rate: float = 0.02) -> None:
        self.rate = rate
        self.step = 0
        self.weights = [0.0 for _ in TRUE_WEIGHTS]
        self.momentum = [0.0 for _ in TRUE_WEIGHTS]
        self.random = random.Random(1)
        self.save_wanted = False
        signal.signal(signal.SIGUSR1, self._want_save)

    def _want_save(self, _number: int, _frame: "FrameType | None") -> None:
        self.save_wanted = True

    def train(self) -> float:
        """One step; its squared error."""
        inputs = [self.random.uniform(-1, 1) for _ in self.weights]
        wanted = sum(w * x for w, x in zip(TRUE_WEIGHTS, inputs)) + self.random.gauss(0, 0.01)
        error = sum(w * x for w, x in zip(self.weights, inputs)) - wanted
        for i, x in enumerate(inputs):
            self.momentum[i] = 0.9 * self.momentum[i] - self.rate * error * x
            self.weights[i] += self.momentum[i]
        self.step += 1
        return error * error

    def save(self) -> Path:
        """Write the state beside its place, then put it there in one stroke."""
        place = DIRECTORY / f"step-{self.step}"
        fresh = DIRECTORY / f".step-{self.step}.tmp"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        (fresh / "model.json").write_text(json.dumps(self.weights))
        (fresh / "optimizer.json").write_text(json.dumps(self.momentum))
        (fresh / "random.json").write_text(json.dumps(self.random.getstate()))
        if not place.exists():
            fresh.rename(place)
        for old in saved()[:-KEPT]:
            shutil.rmtree(old)
        return place

    def load(self) -> None:
        """Go on from the newest state, if there is one."""
        states = saved()
        if not states:
            return
        newest = states[-1]
        self.step = step_of(newest)
        self.weights = json.loads((newest / "model.json").read_text())
        self.momentum = json.loads((newest / "optimizer.json").read_text())
        version, numbers, gauss = json.loads((newest / "random.json").read_text())
        self.random.setstate((version, tuple(numbers), gauss))


def step_of(state: Path) -> int:
    """The step of a saved state."""
    return int(state.name.partition("-")[2])


def saved() -> "list[Path]":
    """The states that are whole, oldest first."""
    return sorted(DIRECTORY.glob("step-*"), key=step_of)


def main() -> None:
    """Train to the last step, from wherever the newest state is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=0.01, help="how long a step takes")
    options = parser.parse_args()
    trainer = Trainer()
    trainer.load()
    print(f"from step {trainer.step}", flush=True)
    while trainer.step < options.steps:
        loss = trainer.train()
        time.sleep(options.seconds)
        if trainer.save_wanted or trainer.step % options.save_every == 0:
            trainer.save_wanted = False
            print(f"step {trainer.step}: loss {loss:.6f}, saved to {trainer.save()}", flush=True)
    Path("model.json").write_text(json.dumps(trainer.weights))
    print(f"weights {' '.join(f'{w:.3f}' for w in trainer.weights)}", flush=True)


if __name__ == "__main__":
    main()
