"""How a command fails: what went wrong on stderr, and an exit status that scripts can use.

0 all went well; 1 it failed or the broker cannot be reached; 2 the input is wrong, and nothing was changed;
130 the person pressed Ctrl-C.
"""

import click

INTERRUPTED = 130


class UsageProblem(click.ClickException):
    """The input is wrong: mend it and try again."""

    exit_code = 2


class NoBroker(UsageProblem):
    """Nobody said where the broker is."""

    def __init__(self) -> None:
        super().__init__(
            "there is no broker to ask: give its address by --url or SPOTFERRY_URL, or start one here with"
            " `spotferry local up`"
        )


class Failed(click.ClickException):
    """The input was right, but it did not work."""

    exit_code = 1


class Unreachable(Failed):
    """The broker did not answer, or answered that it is in trouble: the same again later may work."""
