"""Which offer next, and why: the cheapest that fits, proven by counts.

Clouds without a spot market (`offer_index.NO_SPOT_MARKET`) sell at the list price only and take nothing back, so a job
that asks for spot machines may be placed there too; everywhere else `spot` means spot.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from spotferry.domain.ban_words import Pool
from spotferry.domain.cheapest import cheapest
from spotferry.domain.exclusions import Tally, alone, banned_pools, tally
from spotferry.domain.offer_index import OfferIndex
from spotferry.domain.plan import Limits, Plan
from spotferry.domain.plan_words import (
    CAP,
    SET_ASIDE,
    key_of,
    words_of_choice,
    words_of_fallback,
    words_of_impossibility,
    words_of_processor,
    words_of_run,
    words_of_wait,
)
from spotferry.domain.run_cost import Terms
from spotferry.domain.selection import Selection, select
from spotferry.types.errors import ImpossibleSpecs, Problem
from spotferry.types.instance import Candidate
from spotferry.types.job_file import UserInstanceSpecs

__all__ = ["Limits", "OfferIndex", "Plan", "choose", "left_alone", "plan", "refuse_impossible"]

_NEXT = 10

Best = list[tuple[Candidate, Terms]]


def choose(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> Candidate | None:
    """The candidate whose run costs least, disk included; None for none.

    Of equals more memory, then the name decides.
    """
    for asked in _markets(specs):
        selection = select(index, asked, limits)
        for candidate, _ in cheapest(index, selection, selection.rows(index), 1):
            return candidate
    return None


def plan(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> Plan:
    """The choice and its proof: how many candidates each condition removed, and the next ten.

    With `spot: fallback` it is the plan over spot machines where one is chosen, else the plan over on-demand machines,
    whose words say why there is no spot machine.
    """
    spot, *others = [_plan_in_market(index, asked, limits) for asked in _until_chosen(index, specs, limits)]
    if not others:
        return spot
    (listed,) = others
    hopeless = spot.impossible and listed.impossible
    better = listed if listed.chosen or (spot.impossible and not hopeless) else spot
    return better.model_copy(update={"words": words_of_fallback(spot, listed)})


def _plan_in_market(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> Plan:
    selection = select(index, specs, limits)
    count = tally(index, selection)
    if not count.fit:
        return _nothing_fits(index, specs, limits, selection, count)
    best = list(cheapest(index, selection, count.rows, 1 + _NEXT))
    (chosen, terms), *after = best
    words = words_of_choice(chosen, count.fit, index.considered, _tie(best), cost=_cost_word(limits))
    return Plan(
        chosen=chosen,
        considered=index.considered,
        excluded=count.excluded,
        fit=count.fit,
        next=tuple(candidate for candidate, _ in after),
        runs=tuple(terms.run(candidate) for candidate, terms in best) if limits.weighs_runs else (),
        objective=limits.objective,
        words=words + (words_of_run(chosen, terms.run(chosen), limits) if limits.weighs_runs else ""),
    )


def left_alone(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> Sequence[Pool]:
    """What would fit and is passed over because of a ban, in the markets that the plan looks at."""
    asked_for = _until_chosen(index, specs, limits) if limits.bans else ()
    return [pool for asked in asked_for for pool in banned_pools(index, select(index, asked, limits))]


def _markets(specs: UserInstanceSpecs) -> Iterator[UserInstanceSpecs]:
    """The specification for each market to look in, in order."""
    if specs.spot != "fallback":
        yield specs
        return
    yield specs.model_copy(update={"spot": True})
    yield specs.model_copy(update={"spot": False})


def _until_chosen(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> Iterator[UserInstanceSpecs]:
    """The markets to prove: the first where something is to be had, and the ones before it."""
    for asked in _markets(specs):
        yield asked
        if specs.spot == "fallback" and choose(index, asked, limits) is not None:
            return


def _tie(best: Best) -> bool:
    """The best two cost the same."""
    costs = [terms.usd(candidate.total_usd_hour) for candidate, terms in best[:2]]
    return len(costs) > 1 and costs[0] == costs[1]


def _cost_word(limits: Limits) -> str:
    return "" if limits.objective == "price" and not limits.inputs else "by the cost of the whole run "


def refuse_impossible(plan: Plan, specs: UserInstanceSpecs) -> None:  # noqa: ARG001 (the words quote it already)
    """Refuse a specification that no offer can ever meet.

    Raises:
        ImpossibleSpecs: nothing would fit even with nothing banned or avoided; names the field.
    """
    if plan.impossible:
        raise ImpossibleSpecs([Problem(f"instance_specs.{key_of(plan.blocker)}", plan.words)])


def _nothing_fits(
    index: OfferIndex, specs: UserInstanceSpecs, limits: Limits, selection: Selection, count: Tally
) -> Plan:
    excluded = count.excluded
    freed = replace(limits, bans=MappingProxyType({}), avoid=())
    if limits.cpu_families is not None:
        return _no_such_processor(index, specs, limits, excluded)
    if not index.priced.total(index.machines):
        blocker, impossible, words = "no_price", False, "The catalogue holds no machine that has a price: refresh it."
    elif any(excluded[name] for name in SET_ASIDE):
        blocker, impossible = max(reversed(SET_ASIDE), key=lambda name: excluded[name]), False
        words = words_of_wait(excluded, choose(index, specs, freed))
    else:
        removed = alone(index, selection)
        blocker, otherwise = _to_blame(index, specs, freed, removed)
        impossible, words = True, words_of_impossibility(index, specs, removed, blocker, otherwise)
    return Plan(
        considered=index.considered,
        excluded=excluded,
        fit=0,
        impossible=impossible,
        blocker=blocker,
        words=words,
    )


def _to_blame(
    index: OfferIndex, specs: UserInstanceSpecs, limits: Limits, removed: dict[str, int]
) -> tuple[str, Candidate | None]:
    """The condition that stands in the way, and the choice if it were lifted.

    It is the cap wherever something fits without it: the machine is what the job needs, the cap is what its owner can
    move. Otherwise it is the condition that excludes the most.
    """
    if specs.max_price_usd_hour and (dearer := _otherwise(index, specs, limits, CAP)):
        return CAP, dearer
    blocker = max(reversed(removed), key=lambda name: removed[name])
    return blocker, _otherwise(index, specs, limits, blocker)


def _no_such_processor(
    index: OfferIndex, specs: UserInstanceSpecs, limits: Limits, excluded: Mapping[str, int]
) -> Plan:
    """The checkpoint's processor may come free; what cannot be for other reasons is impossible for those."""
    anywhere = plan(index, specs, replace(limits, cpu_families=None))
    if anywhere.impossible:
        return anywhere
    return Plan(
        considered=index.considered,
        excluded=dict(excluded),
        fit=0,
        blocker="checkpoint_processor",
        words=words_of_processor(limits, anywhere),
    )


def _otherwise(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits, blocker: str) -> Candidate | None:
    """The choice if the blocker were lifted."""
    if blocker == "region_not_set_up":
        return choose(index, specs, replace(limits, open_regions=None))
    key = key_of(blocker)
    lifted: dict[str, object] = {
        "arch": "arm64" if specs.arch == "x86_64" else "x86_64",
        "spot": not specs.spot,
    }
    field = UserInstanceSpecs.model_fields[key]
    return choose(index, specs.model_copy(update={key: lifted.get(key, field.default)}), limits)
