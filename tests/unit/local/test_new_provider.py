"""`make new-provider`: what it writes, and that it fails for the right reason until it is filled."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local.new_provider import NewProviderError, files_of, main, write
from local.packaging import ROOT


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of as much of the tree as a contract test needs."""
    for folder in ("layers/shared/spotferry", "local", "tests/contract"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A module, in the tree."""
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tree, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_new_cloud_fails_its_contract_until_it_is_filled(tree: Path) -> None:
    """The folder is a cloud, its contract test is there, and every test of it says what to write; linters agree."""
    done = run(tree, "local.new_provider", "two_clouds", "--root", str(tree))
    assert done.returncode == 0, done.stderr
    own = ("tests/contract/test_provider_two_clouds.py", "tests/unit/providers/two_clouds")
    failed = run(tree, "pytest", "-q", "-p", "no:cacheprovider", *own)
    assert failed.returncode == 1, failed.stdout
    assert "the cloud two_clouds has no wire face yet: write local/two_clouds.py" in failed.stdout
    assert "states.py has no states yet" in failed.stdout
    assert failed.stdout.splitlines()[-1].startswith("2 failed, ")
    assert "passed" not in failed.stdout.splitlines()[-1]
    complete = run(tree, "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_completeness.py")
    assert complete.returncode == 0, complete.stdout
    written = [str(path) for path in files_of("two_clouds") if path.suffix == ".py"]
    for linter in (["check"], ["format", "--check"]):
        linted = run(tree, "ruff", *linter, *written)
        assert linted.returncode == 0, linted.stdout


def test_what_is_there_is_not_overwritten(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cloud that was begun before is named with its files, and stays as it is."""
    provider = tree / "layers/shared/spotferry/providers/aws/provider.py"
    before = provider.read_text()
    assert main(["aws", "--root", str(tree)]) == 1
    assert "aws was begun before" in capsys.readouterr().err
    assert provider.read_text() == before
    assert not (tree / "tests/unit/providers/aws/test_tables.py").exists()


@pytest.mark.parametrize("name", ["", "Hetzner", "a-b", "1st", "a__b", "../x", "a b"])
def test_a_name_that_is_none(name: str) -> None:
    """It has to serve as folder, module and file name."""
    with pytest.raises(NewProviderError, match="no name for a cloud"):
        files_of(name)


def test_another_tree_is_refused(tmp_path: Path) -> None:
    """Nothing is written where the project is not."""
    with pytest.raises(NewProviderError, match=r"has no .*registry\.py"):
        write("hetzner", tmp_path)
    assert list(tmp_path.iterdir()) == []
