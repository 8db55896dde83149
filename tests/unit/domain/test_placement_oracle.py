"""Placement agrees with brute force over price lists, which reads them by itself."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spotferry.catalog.importer import import_price_list
from spotferry.domain.placement import Limits, OfferIndex, choose, plan
from spotferry.types import UserInstanceSpecs
from tests.unit.domain.made_up_list import ZONES, made_up_list
from tests.unit.domain.price_list_oracle import SHARED_LISTS, List, Verdict, judge, read_list

TYPES = ("m5.large", "t3.nano", "g4dn.xlarge", "p4d.24xlarge", "c6g.large", "m5.nonsense", "r5.4xlarge")

SPECS = st.builds(
    UserInstanceSpecs,
    instance_type=st.one_of(st.just(""), st.just(""), st.just(""), st.sampled_from(TYPES)),
    memory_gb=st.one_of(st.just(0), st.sampled_from([1, 2, 4, 8, 16, 32, 64, 244, 768]), st.floats(0, 2000)),
    cpu_cores=st.one_of(st.just(0), st.sampled_from([1, 2, 4, 8, 16, 32, 96]), st.floats(0, 130)),
    vram_gb=st.one_of(st.just(0), st.just(0), st.sampled_from([8, 16, 24, 40, 64, 320, 640]), st.floats(0, 700)),
    gpu=st.one_of(st.just(""), st.just(""), st.sampled_from(["T4", "nvidia", "AMD", "a100", "V100-32GB", "k80", "H9"])),
    gpu_count=st.sampled_from([0, 0, 0, 1, 2, 4, 8, 16]),
    max_price_usd_hour=st.one_of(st.just("0"), st.decimals("0.001", "40", places=4).map(str)),
    arch=st.sampled_from(["x86_64", "x86_64", "arm64"]),
    disk_gb=st.one_of(st.just(0), st.sampled_from([4, 8, 30, 45, 500, 16_000])),
    providers=st.sampled_from([(), (), ("aws",), ("gcp", "aws"), ("gcp",)]),
    regions=st.one_of(st.just(()), st.lists(st.sampled_from([*ZONES, "nowhere-1"]), min_size=1).map(tuple)),
    spot=st.sampled_from([True, True, False]),
)


PATTERNS = st.builds(
    "/".join,
    st.tuples(
        st.sampled_from(["*", "us-east-1", "eu-west-1", "us-west-2"]),
        st.sampled_from(["*", "*", "use1-az1", "euw1-az2"]),
        st.sampled_from(["*", "m5.*", "g4dn.*", "t3.nano", "t3.large", "m5.large"]),
    ),
)
LIMITS = st.builds(
    Limits,
    open_regions=st.one_of(
        st.none(), st.frozensets(st.tuples(st.sampled_from(["aws", "gcp"]), st.sampled_from(list(ZONES))))
    ),
    bans=st.dictionaries(
        st.tuples(st.sampled_from(["aws", "aws", "gcp"]), st.sampled_from(["spot", "on_demand"])),
        st.lists(PATTERNS, max_size=4),
    ),
    avoid=st.lists(PATTERNS, max_size=2),
)


@dataclass(frozen=True)
class World:
    """One price list, indexed by the product and read by the oracle."""

    index: OfferIndex
    read_apart: List


@pytest.fixture(scope="module", params=["made up", "public"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A list that is made here, and the public AWS list where it is at hand."""
    if request.param == "public":
        path = SHARED_LISTS / "aws.csv"
        if not path.is_file():
            pytest.skip("the public price list is not beside this repository")
    else:
        path = tmp_path_factory.mktemp("list") / "aws.csv"
        path.write_text(made_up_list(random.Random(7)))  # noqa: S311 (the same list each time)
    offers, _ = import_price_list(path.read_bytes(), "aws", datetime(2026, 1, 1, tzinfo=UTC))
    return World(OfferIndex(offers), read_list(path))


@settings(max_examples=100, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(specs=SPECS, limits=st.one_of(st.just(Limits()), LIMITS))
def test_choice_is_the_cheapest_that_brute_force_finds(world: World, specs: UserInstanceSpecs, limits: Limits) -> None:
    """For a hundred random specifications and limits: the same price and counts, and choice and proof agree."""
    proof = plan(world.index, specs, limits)
    counts = {name: count for name, count in {**proof.excluded, "fit": proof.fit}.items() if count}
    total = proof.chosen.total_usd_hour if proof.chosen else None
    assert Verdict(total, counts) == judge(world.read_apart, specs, limits)
    assert sum(proof.excluded.values()) + proof.fit == proof.considered
    assert choose(world.index, specs, limits) == proof.chosen
    totals = [candidate.total_usd_hour for candidate in ([proof.chosen] if proof.chosen else []) + [*proof.next]]
    assert totals == sorted(totals)
    assert len(totals) == min(proof.fit, 11)
