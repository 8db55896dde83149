"""Why pools are left alone, in words."""

from spotferry.domain.ban_words import words_of_bans


def test_nothing_is_said_without_a_reason() -> None:
    """A ban that ran out meanwhile leaves nothing to tell."""
    assert words_of_bans(3, {}) == ""


def test_places_and_markets_with_one_reason_are_told_together() -> None:
    """What is banned for the same reason is one thing, in both markets and wherever; more than three are counted."""
    here = {f"r{n}/*/*": "a policy." for n in range(5)}
    reasons = {("aws", "spot"): here, ("aws", "on_demand"): here}
    assert words_of_bans(7, reasons) == (
        " Left alone for now, 7 candidates: aws r0, r1, r2 and 2 more places (on-demand and spot) because a policy."
    )


def test_the_widest_come_first_and_the_rest_are_counted() -> None:
    """A whole cloud before a region before a pool; no more than three of them, and no reason without an end."""
    reasons = {
        ("aws", "spot"): {"r/ra/t": "none left", "r/ra/*": "full", "r/*/m5.*": "quota", "*/*/*": "x" * 400},
        ("azure", "spot"): {"eastus//D2": "none left"},
    }
    words = words_of_bans(9, reasons)
    assert words.startswith(f" Left alone for now, 9 candidates: aws everywhere (spot) because {'x' * 157}...; ")
    assert words.endswith("; aws r m5.* (spot) because quota; aws ra (spot) because full; and for 2 more reasons.")


def test_a_pool_without_a_zone_is_named_by_its_region() -> None:
    """A cloud that places by region has no zone to name; one candidate is one."""
    assert words_of_bans(1, {("paperspace", "on_demand"): {"NY2//C4": "none"}}) == (
        " Left alone for now, 1 candidate: paperspace NY2 C4 (on-demand) because none."
    )
    assert "gcp us-central1-a e2 (spot)" in words_of_bans(1, {("gcp", "spot"): {"us-central1/us-central1-a/e2": "x"}})
    assert "azure eastus 1 D2 (spot)" in words_of_bans(1, {("azure", "spot"): {"eastus/1/D2": "x"}})
