"""Ids and names that a command is given, checked before anybody is asked.

An empty one, as an unset variable of a script makes one, is neither all of them nor none.
"""

import re

import click

from cli.errors import UsageProblem
from spotferry.types.words import shown

MAX_KEY_CHARS = 255


class Given(click.ParamType[str]):
    """A word of a certain form, which is never empty.

    Args:
        form: pattern of the whole word.
        otherwise: what is said of a word that has another form, with what one can do.
    """

    name = "text"

    def __init__(self, form: str, otherwise: str) -> None:
        self._form = re.compile(form)
        self._otherwise = otherwise

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 (click's signature)
        """The word as it was given."""
        text = str(value)
        if not self._form.fullmatch(text):
            assert param is not None
            called = param.opts[0] if isinstance(param, click.Option) else str(param.metavar).strip("[]")
            raise UsageProblem(f"{called}: {shown(text)} {self._otherwise}")
        return text


ID = Given("[A-Za-z0-9][A-Za-z0-9-]{0,63}", "is not an id; `spotferry list` and `spotferry instances` show them")
REGION = Given(".+", "is not the name of a region; `spotferry region list` shows those that are open")
STACK = Given("[A-Za-z][A-Za-z0-9-]*", "is not the name of a stack of template-region.yaml")
KEY = Given(f"[ -~]{{1,{MAX_KEY_CHARS}}}", f"is not 1 to {MAX_KEY_CHARS} printable ASCII characters")
