"""Placement over the lists of several clouds agrees with brute force, for two thousand random specifications."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from spotferry.catalog.importer import import_price_list
from spotferry.domain.placement import Limits, OfferIndex, choose, plan
from spotferry.types import Offer, UserInstanceSpecs
from spotferry.types.job_file import Input
from tests.unit.domain.made_up_list import made_up_list
from tests.unit.domain.price_list_oracle import SHARED_LISTS
from tests.unit.domain.sql_oracle import SqlOracle

QUESTIONS = 2000
HOME = "aws/us-east-1"
TYPES = ("m5.large", "n1-standard-8", "g4dn.xlarge", "a2-highgpu-1g", "C5", "p4d.24xlarge", "c6g.large", "no-such-type")
REGIONS = ("us-east-1", "eu-west-1", "us-central1", "europe-west4", "NY2", "us-west-2", "nowhere")


@dataclass(frozen=True)
class World:
    """The same lists, indexed by the product and read by the oracle."""

    index: OfferIndex
    oracle: SqlOracle


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The public lists of three clouds where they are at hand, else one that is made here."""
    lists = {cloud: SHARED_LISTS / f"{cloud}.csv" for cloud in ("aws", "gcp", "paperspace")}
    if not all(path.is_file() for path in lists.values()):
        lists = {"aws": tmp_path_factory.mktemp("list") / "aws.csv"}
        lists["aws"].write_text(made_up_list(random.Random(7)))  # noqa: S311 (the same list each time)
    oracle = SqlOracle(lists, HOME)
    yield World(OfferIndex(_offers(lists)), oracle)
    oracle.close()


def test_two_thousand_choices_are_the_cheapest_that_brute_force_finds(world: World) -> None:
    """The same cost of the run and number that fit; excluded counts add up, and choice and proof agree."""
    dice = random.Random(2026)  # noqa: S311 (a seed, so that a failure repeats)
    fitting = 0
    for _ in range(QUESTIONS):
        specs, limits = _specs(dice), _limits(dice)
        proof, answer = plan(world.index, specs, limits), world.oracle.ask(specs, limits)
        assert proof.fit == answer.fit, (specs, limits)
        assert _same(proof.runs[0].usd if proof.runs else None, answer.usd, limits.hours), (specs, limits)
        assert sum(proof.excluded.values()) + proof.fit == proof.considered
        assert choose(world.index, specs, limits) == proof.chosen
        fitting += proof.chosen is not None
    assert QUESTIONS // 4 < fitting < QUESTIONS


def _same(usd: Decimal | None, other: Decimal | None, hours: Decimal) -> bool:
    """Equal but for what the oracle rounds off: a billionth of a dollar an hour."""
    if usd is None or other is None:
        return usd is other
    return abs(usd - other) <= hours * Decimal("1e-9")


def _offers(lists: dict[str, Path]) -> list[Offer]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return [offer for cloud, path in lists.items() for offer in import_price_list(path.read_bytes(), cloud, now)[0]]


def _limits(dice: random.Random) -> Limits:
    """Always an expected time, so that runs are summed up; inputs in one of three cases."""
    limits = Limits(expected_hours=Decimal(dice.choice([1, 5, 20, 100, 1000])) / 10)
    if dice.random() < 0.67:
        return limits
    sizes = dice.choice([(1,), (500,), (20, 3)])
    inputs = tuple(
        Input(uri=f"s3://data/{n}", location=HOME, size_gb=Decimal(size_gb)) for n, size_gb in enumerate(sizes)
    )
    return replace(limits, inputs=inputs)


def _specs(dice: random.Random) -> UserInstanceSpecs:
    def sometimes(chance: float, *choices: object) -> object:
        return dice.choice(choices) if dice.random() < chance else None

    asked = {
        "instance_type": sometimes(0.1, *TYPES),
        "memory_gb": sometimes(0.5, 1, 2, 8, 16, 64, 244, 768, 4000, round(dice.uniform(0, 200), 2)),
        "cpu_cores": sometimes(0.5, 1, 2, 4, 8, 32, 96, round(dice.uniform(0, 64), 1)),
        "vram_gb": sometimes(0.15, 8, 16, 24, 40, 64, 320),
        "gpu": sometimes(0.3, "T4", "nvidia", "AMD", "a100", "V100", "k80", "P100", "A100-80GB", "H9"),
        "gpu_count": sometimes(0.2, 1, 2, 4, 8, 16),
        "max_price_usd_hour": sometimes(0.3, *(str(round(10 ** dice.uniform(-3, 1.5), 4)) for _ in range(3))),
        "arch": sometimes(0.15, "arm64"),
        "disk_gb": sometimes(0.2, 4, 8, 30, 45, 500, 16_000),
        "providers": sometimes(0.3, ("aws",), ("gcp",), ("paperspace",), ("gcp", "paperspace"), ("azure",)),
        "regions": sometimes(0.2, tuple(dice.sample(REGIONS, dice.randint(1, 3)))),
        "spot": sometimes(0.4, False, "fallback"),
    }
    return UserInstanceSpecs.model_validate({name: value for name, value in asked.items() if value is not None})
