"""Which offer next, and why: the cheapest that fits, proven by counts.

Clouds without a spot market (`offer_index.NO_SPOT_MARKET`) sell at the list price only and take nothing back, so a job
that asks for spot machines may be placed there too; everywhere else `spot` means spot.
"""

from dataclasses import replace
from types import MappingProxyType

from spotferry.domain.cheapest import cheapest
from spotferry.domain.exclusions import Tally, alone, tally
from spotferry.domain.offer_index import OfferIndex
from spotferry.domain.plan import Limits, Plan
from spotferry.domain.plan_words import SET_ASIDE, key_of, words_of_choice, words_of_impossibility, words_of_wait
from spotferry.domain.selection import Selection, select
from spotferry.types.errors import ImpossibleSpecs, Problem
from spotferry.types.instance import Candidate
from spotferry.types.job_file import UserInstanceSpecs

__all__ = ["Limits", "OfferIndex", "Plan", "choose", "plan", "refuse_impossible"]

_NEXT = 10


def choose(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> Candidate | None:
    """The cheapest candidate that fits, disk included; of equals more memory, then the name decides; None for none."""
    selection = select(index, specs, limits)
    return next(iter(cheapest(index, selection, selection.rows(index), 1)), None)


def plan(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> Plan:
    """The choice and its proof: how many candidates each condition removed, and the next ten."""
    selection = select(index, specs, limits)
    count = tally(index, selection)
    if not count.fit:
        return _nothing_fits(index, specs, limits, selection, count)
    best = cheapest(index, selection, count.rows, 1 + _NEXT)
    return Plan(
        chosen=best[0],
        considered=index.considered,
        excluded=count.excluded,
        fit=count.fit,
        next=tuple(best[1:]),
        words=words_of_choice(best[0], count.fit, index.considered, best[1] if len(best) > 1 else None),
    )


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
    if not index.priced.total(index.machines):
        blocker, impossible, words = "no_price", False, "The catalogue holds no machine that has a price: refresh it."
    elif any(excluded[name] for name in SET_ASIDE):
        blocker, impossible = max(reversed(SET_ASIDE), key=lambda name: excluded[name]), False
        freed = replace(limits, bans=MappingProxyType({}), avoid=())
        words = words_of_wait(excluded, choose(index, specs, freed))
    else:
        removed = alone(index, selection)
        blocker, impossible = max(reversed(removed), key=lambda name: removed[name]), True
        words = words_of_impossibility(index, specs, removed, blocker, _otherwise(index, specs, limits, blocker))
    return Plan(
        considered=index.considered,
        excluded=excluded,
        fit=0,
        impossible=impossible,
        blocker=blocker,
        words=words,
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
