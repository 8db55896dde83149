"""The command: measures each subject, prints one table, writes one JSON file."""

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks import catalogues, decisions, imports
from benchmarks.offer_lists import from_price_lists, made_up
from benchmarks.report import Measurement, print_table, write_json
from spotferry.types import PROVIDER_NAMES, InvalidInput, Offer

RESULTS = Path(__file__).with_name("results.json")
QUIET_JOB = "benchmarks.quiet_job"
"""Counts the requests of a quiet running job; a module with `measure() -> Iterable[Measurement]`."""


SUBJECTS = ("decisions", "catalogues", "imports", "quiet_job", "recovery", "checkpoints")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks; exit status 2 when an argument is wrong, else 0 whatever the figures are."""
    asked = _parse(arguments)
    offers = _offers(asked.csv)
    subjects: dict[str, Callable[[], Iterable[Measurement]]] = {
        "decisions": lambda: decisions.measure(offers),
        "catalogues": lambda: catalogues.measure(offers),
        "imports": imports.measure,
        "quiet_job": _quiet_job,
        "recovery": _recovery,
        "checkpoints": _checkpoints,
    }
    found: list[Measurement] = []
    for name, measure in subjects.items():
        if not asked.only or name in asked.only:
            print(f"measuring {name} ...", file=sys.stderr)
            found += measure()
    print_table(found)
    write_json(asked.json, found)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--csv",
        action="append",
        default=[],
        type=_price_list,
        metavar="PROVIDER=FILE",
        help="measure over these price lists; without any, over a list as long that is made of the starter offers",
    )
    parser.add_argument("--only", action="append", choices=SUBJECTS)
    parser.add_argument("--json", type=Path, default=RESULTS, help="where to write the figures (%(default)s)")
    return parser.parse_args(arguments)


def _price_list(text: str) -> tuple[str, Path]:
    provider, _, path = text.rpartition("=")
    provider = provider or Path(path).stem
    if provider not in PROVIDER_NAMES or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not PROVIDER=FILE, with one of {', '.join(PROVIDER_NAMES)}")
    return provider, Path(path)


def _offers(lists: Sequence[tuple[str, Path]]) -> list[Offer]:
    try:
        return from_price_lists(lists) if lists else made_up()
    except InvalidInput as error:
        raise SystemExit(f"error: {error}") from error


def _checkpoints() -> Iterable[Measurement]:
    from benchmarks import checkpoints  # noqa: PLC0415  (it brings the tests' rig along)

    return checkpoints.measure()


def _quiet_job() -> Iterable[Measurement]:
    if importlib.util.find_spec(QUIET_JOB) is None:
        return []
    found: Iterable[Measurement] = importlib.import_module(QUIET_JOB).measure()
    return found


def _recovery() -> Iterable[Measurement]:
    from benchmarks import recovery  # noqa: PLC0415 - the local cloud's packages are loaded by nothing else here

    return recovery.measure()


if __name__ == "__main__":
    main()
