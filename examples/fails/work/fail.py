"""Does half of its work, writes down how far it came, and gives up."""

import sys
from pathlib import Path

STEPS = 4


def main() -> int:
    """Work until the step that fails; the exit status says so."""
    report = Path("report.txt")
    for step in range(1, STEPS + 1):
        print(f"step {step} of {STEPS}", flush=True)
        report.write_text(f"came as far as step {step}\n")
        if step == STEPS // 2:
            print("this step cannot be done", file=sys.stderr)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
