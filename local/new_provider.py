"""Begins a cloud: its folder under providers/ and its contract test, which fails until they are filled.

    python -m local.new_provider NAME [--root TREE]

Nothing that is there is overwritten. docs/adding-a-provider.md says what each file is for.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from local.new_provider_files import CONTRACT, FOLDER
from local.packaging import ROOT

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PROVIDERS = Path("layers/shared/spotferry/providers")
_TESTS = Path("tests")


class NewProviderError(Exception):
    """Nothing was written; the text says why."""


def files_of(name: str) -> Mapping[Path, str]:
    """What a new cloud begins with: contents by path below the tree's root.

    Raises:
        NewProviderError: the name is none for a folder, a module and a column of a table.
    """
    if not _NAME.fullmatch(name):
        raise NewProviderError(f"{name!r} is no name for a cloud: lower-case letters, digits and single underscores")
    words = {"NAME": name, "CLASS": "".join(part.capitalize() for part in name.split("_"))}
    folder = {_PROVIDERS / name / path: text for path, text in FOLDER.items()}
    tests = {_TESTS / path.replace("NAME", name): text for path, text in CONTRACT.items()}
    return {path: _filled(text, words) for path, text in (folder | tests).items()}


def write(name: str, root: Path) -> Sequence[Path]:
    """Write the files of a new cloud into the tree; their paths.

    Raises:
        NewProviderError: a file is there already, the name is none, or the tree is none of ours.
    """
    files = files_of(name)
    if not (root / _PROVIDERS / "registry.py").is_file():
        raise NewProviderError(f"{root} is not this project's tree: it has no {_PROVIDERS / 'registry.py'}")
    there = sorted(str(path) for path in files if (root / path).exists())
    if there:
        raise NewProviderError(f"the cloud {name} was begun before: {', '.join(there)} exists")
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return sorted(files)


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Begin the cloud that is named; 0 when its files were written."""
    parser = argparse.ArgumentParser(prog="make new-provider", description=__doc__)
    parser.add_argument("name", help="of the cloud, as its folder will be called")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree (this one)")
    said = parser.parse_args(arguments)
    try:
        written = write(said.name, said.root)
    except NewProviderError as error:
        sys.stderr.write(f"new-provider: {error}\n")
        return 1
    sys.stdout.write("".join(f"{path}\n" for path in written))
    sys.stdout.write(
        f"Now run `.venv/bin/python -m pytest tests/contract/test_provider_{said.name}.py`: it fails until the cloud"
        " keeps the contract. docs/adding-a-provider.md says what each file is for.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
