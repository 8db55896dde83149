"""Why pools are left alone, in words."""

from spotferry.domain.ban_words import words_of_bans


def test_nothing_is_said_without_a_reason() -> None:
    """A ban that ran out meanwhile leaves nothing to tell."""
    assert words_of_bans(3, {}) == ""


def test_markets_with_one_reason_are_told_together() -> None:
    """A pattern that is banned for the same reason in both markets is one thing."""
    reasons = {("aws", "spot"): {"r/*/*": "a policy."}, ("aws", "on_demand"): {"r/*/*": "a policy."}}
    assert words_of_bans(7, reasons) == (
        " Left alone for now, 7 candidates: aws r (on-demand and spot) because a policy."
    )


def test_the_widest_come_first_and_the_rest_are_counted() -> None:
    """A whole cloud before a region before a pool; no more than three of them, and no reason without an end."""
    reasons = {
        ("aws", "spot"): {"r/ra/t": "none left", "r/ra/*": "full", "r/*/m5.*": "quota", "*/*/*": "x" * 400},
        ("azure", "spot"): {"eastus//D2": "none left"},
    }
    words = words_of_bans(9, reasons)
    assert words.startswith(f" Left alone for now, 9 candidates: aws everywhere (spot) because {'x' * 157}...; ")
    assert words.endswith("; aws r m5.* (spot) because quota; aws ra (spot) because full, and 2 more.")


def test_a_pool_without_a_zone_is_named_by_its_region() -> None:
    """A cloud that places by region has no zone to name."""
    assert "paperspace NY2 C4 (on-demand) because none" in words_of_bans(
        1, {("paperspace", "on_demand"): {"NY2//C4": "none"}}
    )
