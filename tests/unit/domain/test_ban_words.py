"""Why pools are left alone, in words."""

from spotferry.domain.ban_words import Pool, words_of_bans


def pools(*names: str, provider: str = "aws", market: str = "spot") -> list[Pool]:
    """Candidates by region/zone/type."""
    split = [name.split("/") for name in names]
    return [Pool(provider, market, (region, zone, kind)) for region, zone, kind in split]


def test_nothing_is_said_without_a_reason() -> None:
    """A ban that ran out meanwhile leaves nothing to tell."""
    assert words_of_bans(pools("r/ra/t"), {}) == ""
    assert words_of_bans(pools("r/ra/t"), {("aws", "spot"): {"r/rb/t": "short", "no pool": "short"}}) == ""


def test_places_and_markets_with_one_reason_are_told_together() -> None:
    """What is banned for the same reason is one thing, in both markets and wherever; more than three are counted."""
    here = {f"r{n}/*/*": "a policy." for n in range(5)}
    reasons = {("aws", "spot"): here, ("aws", "on_demand"): here}
    left = [pool for market in ("spot", "on_demand") for n in range(5) for pool in pools(f"r{n}/z/t", market=market)]
    assert words_of_bans(left, reasons) == (
        " Left alone for now, 10 candidates: aws r0, r1, r2 and 2 more places (on-demand and spot) because a policy."
    )
    four = pools(*(f"r{n}/z/t" for n in range(4)))
    assert words_of_bans(four, reasons) == (
        " Left alone for now, 4 candidates: aws r0, r1, r2 and 1 more place (spot) because a policy."
    )


def test_only_places_of_candidates_that_were_passed_over_are_told() -> None:
    """What is left alone elsewhere, or under a wider word already, would make the list longer than the count."""
    reasons = {
        ("aws", "spot"): {"r/ra/t": "short", "r/rb/t": "short", "r/rc/t": "short", "r/rc/*": "full"},
        ("gcp", "spot"): {"*/*/*": "no credentials"},
    }
    assert words_of_bans(pools("r/ra/t"), reasons) == (
        " Left alone for now, 1 candidate: aws ra t (spot) because short."
    )
    assert words_of_bans(pools("r/ra/t", "r/rc/t"), reasons) == (
        " Left alone for now, 2 candidates: aws rc (spot) because full; aws ra t (spot) because short."
    )


def test_the_widest_come_first_and_the_rest_are_counted() -> None:
    """A region before a pool; no more than three of them, and no reason without an end."""
    reasons = {
        ("aws", "spot"): {"r/ra/t": "none left", "q/qa/*": "full", "r/*/m5.*": "quota", "s/*/*": "x" * 400},
        ("azure", "spot"): {"eastus//D2": "none left"},
    }
    left = pools("r/ra/t", "q/qa/t", "r/rb/m5.large", "s/sa/t", "s/sb/t")
    words = words_of_bans([*left, *pools("eastus//D2", provider="azure")], reasons)
    assert words.startswith(" Left alone for now, 6 candidates: aws r m5.* (spot) because quota; ")
    assert f"; aws s (spot) because {'x' * 157}...; " in words
    assert words.endswith("; aws qa (spot) because full; and for 2 more reasons.")
    assert "aws everywhere (spot) because x." in words_of_bans(left, {("aws", "spot"): {"*/*/*": "x"}})


def test_a_pool_without_a_zone_is_named_by_its_region() -> None:
    """A cloud that places by region has no zone to name; one candidate is one."""
    at_home = pools("NY2//C4", provider="paperspace", market="on_demand")
    assert words_of_bans(at_home, {("paperspace", "on_demand"): {"NY2//C4": "none"}}) == (
        " Left alone for now, 1 candidate: paperspace NY2 C4 (on-demand) because none."
    )
    for provider, pool, words in [
        ("gcp", "us-central1/us-central1-a/e2", "gcp us-central1-a e2 (spot)"),
        ("azure", "eastus/1/D2", "azure eastus 1 D2 (spot)"),
    ]:
        assert words in words_of_bans(pools(pool, provider=provider), {(provider, "spot"): {pool: "x"}})
