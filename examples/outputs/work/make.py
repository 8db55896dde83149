"""Writes MEGABYTES files of one megabyte each to `results`, and their digests to `digests.txt`."""

import hashlib
import os
import random
from pathlib import Path

MEGABYTE = 1_000_000


def main() -> None:
    """Write the files; the same ones on every machine."""
    results = Path("results")
    results.mkdir(exist_ok=True)
    lines = []
    for number in range(int(os.environ.get("MEGABYTES", "4"))):
        content = random.Random(number).randbytes(MEGABYTE)
        file = results / f"part-{number}.bin"
        file.write_bytes(content)
        lines.append(f"{hashlib.sha256(content).hexdigest()}  {file}\n")
        print(f"wrote {file}", flush=True)
    Path("digests.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
