"""How a GPU may be called, and how pools are named in patterns."""

import re

_MEMORY_SUFFIX = re.compile(r"-\d+gb$")


def gpu_word(text: str) -> str:
    """The form in which names of GPUs and makers are compared: without regard to case and outer blanks."""
    return text.strip().casefold()


def gpu_words(name: str, maker: str) -> frozenset[str]:
    """What a person may call this GPU: its name, its name without the size of its memory (`V100-32GB`), its maker."""
    full = gpu_word(name)
    return frozenset({full, _MEMORY_SUFFIX.sub("", full), gpu_word(maker)} - {""})


def part_matches(pattern: str, text: str) -> bool:
    """One part of a pool against one part of a pattern: `*` stands for any text, once: `m5.*`, `Standard_D*s_v5`."""
    before, star, after = pattern.partition("*")
    if not star:
        return pattern == text
    return len(text) >= len(before) + len(after) and text.startswith(before) and text.endswith(after)


def place_text(region: str, zone: str) -> str:
    """A place in words: the zone where its name says the region, as `us-east-1a` does and Azure's `1` does not."""
    if not zone:
        return region
    return zone if zone.startswith(region) else f"{region}/{zone}"
