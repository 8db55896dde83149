"""A plan in words that a person can act on."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches

from spotferry.domain.interruption_rates import CLASS_SOURCE, OWN_SOURCE
from spotferry.domain.offer_index import OfferIndex
from spotferry.domain.offer_words import place_text
from spotferry.domain.plan import Limits, Plan, RunCost
from spotferry.types.instance import Candidate
from spotferry.types.job_file import UserInstanceSpecs
from spotferry.types.words import cut

CAP = "max_price_usd_hour"
"""The condition that a person can move without another machine."""

SET_ASIDE = ("banned", "avoided")
"""Conditions that pass with time: they make nothing impossible."""

_SOURCES = {
    CLASS_SOURCE: "what is known of its class",
    "azure_eviction_rate": "Azure's eviction rate",
    "aws_placement_score": "EC2's placement score",
}
_KEYS = {"market": "spot", "region_not_set_up": "regions"}
_MOST_NAMES = 12
_MOST_COMPARED = 100
_MOST_EXACT = 10_000


def key_of(condition: str) -> str:
    """The key of `instance_specs` that a condition comes from."""
    return _KEYS.get(condition, condition)


def offer_text(candidate: Candidate) -> str:
    """A candidate in a few words: `m5.large in us-east-1a (aws, spot) at $0.0312 an hour with its disk of 30 GB`."""
    offer = candidate.offer
    market = candidate.market.replace("_", "-")
    return (
        f"{offer.instance_type} in {place_text(offer.region, offer.zone)} ({offer.provider}, {market})"
        f" at ${candidate.total_usd_hour:.6f} an hour with its disk of {candidate.disk_gb} GB"
    )


def words_of_choice(chosen: Candidate, fit: int, considered: int, tie: bool, cost: str = "") -> str:  # noqa: FBT001
    """Why this one.

    Args:
        chosen: the choice.
        fit: how many fit.
        considered: of how many.
        tie: another one costs the same.
        cost: what they were compared by where it is not the price of an hour, with a blank behind it.
    """
    only = "the only one that fits" if fit == 1 else f"{cost}the cheapest of {fit} that fit"
    text = f"{offer_text(chosen)} is {only}, of {considered} considered."
    return f"{text} Others cost the same; more memory, then the name decides." if tie else text


def words_of_run(chosen: Candidate, run: RunCost, limits: Limits) -> str:
    """The sum of a whole run, with a blank before it."""
    machine_usd = run.usd - run.transfer_usd
    work = f"{_number(limits.hours)} {'hour' if limits.hours == 1 else 'hours'} of work"
    guess = "" if limits.expected_hours else " (expected_hours says otherwise)"
    text = f" For {work}{guess} it comes to ${run.usd:.4f}: ${machine_usd:.4f} for {_number(run.hours)} machine hours"
    if limits.inputs:
        text += f", ${run.transfer_usd:.4f} to bring {_number(limits.inputs_gb)} GB of inputs to {chosen.offer.region}"
    if limits.objective == "expected_cost":
        text += (
            f", with {_number(run.interruptions)} interruptions expected from {_source_text(run.interruptions_source)}"
        )
    return text + "."


def _source_text(source: str) -> str:
    """Where a rate of interruptions is from; a source that has no words here stands as it is."""
    *own, told = source.split("+")
    text = _SOURCES.get(told, told)
    return f"{text} and what became of your own machines there" if OWN_SOURCE in own else text


def _number(value: Decimal) -> str:
    """A number with at most four significant digits after which nothing follows, and no exponent."""
    return f"{float(f'{value:.4g}'):.10g}" if value < _MOST_EXACT else f"{value:.0f}"


def words_of_fallback(spot: Plan, listed: Plan) -> str:
    """Why no spot machine, then what the list price brings."""
    if listed.chosen:
        return f"{listed.words} On demand, because of spot: {spot.words}"
    return f"Spot: {spot.words} On demand: {listed.words}"


def words_of_wait(excluded: Mapping[str, int], otherwise: Candidate | None) -> str:
    """Why nothing is to be had now, though something fits."""
    failed, taken = (excluded[name] for name in SET_ASIDE)
    text = (
        f"Nothing that fits is free now: {failed} left alone after refused launches, {taken} because this job was just"
        " taken back from there. They are tried again later."
    )
    return text + (f" The cheapest of them is {offer_text(otherwise)}." if otherwise else "")


def words_of_processor(limits: Limits, anywhere: Plan) -> str:
    """Why nothing that fits would do for the job's checkpoint, and what else there is."""
    families = ", ".join(f"{family} of {provider}" for provider, family in sorted(limits.cpu_families or ()))
    text = f"Nothing that fits has the processor that the checkpoint was made on ({families})."
    return f"{text} {anywhere.words}"


def words_of_impossibility(
    index: OfferIndex, specs: UserInstanceSpecs, removed: Mapping[str, int], blocker: str, otherwise: Candidate | None
) -> str:
    """What no offer can meet, what there is instead, and what would help."""
    if blocker == CAP and otherwise is not None:
        cheapest = offer_text(otherwise)
        return f"No offer fits: {_asked(specs, CAP)} is too low. Without it the cheapest that fits is {cheapest}."
    usable = index.priced.total(index.machines)
    whole = removed[blocker] == usable
    share = "each" if whole else str(removed[blocker])
    text = f"No offer fits: {_asked(specs, blocker)} excludes {share} of the {usable} prices on offer."
    there_is = _what_there_is(index, specs, blocker) if whole else ""
    text = f"{text} {there_is}".rstrip()
    if otherwise is not None:
        return f"{text} Without it the cheapest that fits is {offer_text(otherwise)}."
    others = [_asked(specs, name) for name, count in removed.items() if count and name != blocker]
    return f"{text} Without it nothing fits either: see {', '.join(others)}." if others else text


def _asked(specs: UserInstanceSpecs, condition: str) -> str:
    if condition == "region_not_set_up":
        return "that only some regions are set up for this deployment"
    key = key_of(condition)
    value = getattr(specs, key)
    if isinstance(value, tuple):
        return f"{key} {cut(', '.join(value))}"
    if isinstance(value, bool):
        return f"{key} {str(value).lower()}"
    if isinstance(value, float):
        return f"{key} {value:g}"
    return f"{key} {cut(str(value))}"


def _like(name: str, names: Iterable[str]) -> list[str]:
    """The names that begin alike: comparing with all of them would take longer than the choice."""
    known = list(names)
    for length in (3, 2):
        if alike := [other for other in known if other[:length] == name[:length]]:
            return alike[:_MOST_COMPARED]
    return []


def _what_there_is(index: OfferIndex, specs: UserInstanceSpecs, condition: str) -> str:
    largest = {
        "cpu_cores": index.vcpus.values,
        "memory_gb": index.memory_gib.values,
        "gpu_count": index.gpu_count.values,
        "vram_gb": [mib / 1024 for mib in index.vram_mib.values],
    }
    if condition in largest:
        return f"The most on offer is {max(largest[condition]):g}."
    if condition == "instance_type":
        near = get_close_matches(specs.instance_type, _like(specs.instance_type, index.by_type), n=3)
        return f"The nearest names are {', '.join(near)}." if near else "No type has a name like it."
    names: dict[str, Iterable[str]] = {
        "gpu": (row.example.gpu_name for row in index.rows if row.has_gpu),
        "providers": index.by_provider,
        "regions": (region for table in index.zones.values() for region in table.by_region),
    }
    return f"There are: {_some(names[condition])}." if condition in names else ""


def _some(names: Iterable[str]) -> str:
    known = sorted(set(names))
    more = len(known) - _MOST_NAMES
    return ", ".join(known[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "") if known else "none"
