"""How messages put values: short, and in the words of the person who wrote them."""

MOST_SHOWN = 80
"""Characters of a value that a message repeats: enough to find it by."""

MOST_FIELD = 200
"""Characters of a field's path; keys that somebody made up may be of any length."""

MOST_TOLD = 1000
"""Characters of what a machine or a program says of a failure: a few lines, and no record grows by more."""

MOST_PROBLEMS = 50
"""Problems that one refusal tells: what a person reads, and what an answer has room for."""


def cut(text: str, most: int = MOST_SHOWN) -> str:
    """The text, or as much of its beginning as a message may hold."""
    return text if len(text) <= most else f"{text[:most]}..."


def shown(text: str) -> str:
    """A value in quotes, of a length that a person reads."""
    return repr(cut(text))


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things: "1 file", "2 files"; `many` is what they are called where that is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
