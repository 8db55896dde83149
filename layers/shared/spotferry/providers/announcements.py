"""Fields of what clouds announce: read by hand, since a notice is worth most when it is heard soon."""

from collections.abc import Mapping

from spotferry.types.errors import wrong

Fields = Mapping[str, object]


def mapping_in(source: Fields, key: str, prefix: str = "") -> Fields:
    """The object under a key; `prefix` is the path that leads to `source`, with its dot.

    Raises:
        InvalidInput: there is none.
    """
    value = source.get(key)
    if not isinstance(value, Mapping):
        raise wrong(prefix + key, "must be an object")
    return value


def text_in(source: Fields, key: str, prefix: str = "") -> str:
    """The text under a key; `prefix` as above.

    Raises:
        InvalidInput: there is none, or an empty one.
    """
    value = source.get(key)
    if not isinstance(value, str) or not value:
        raise wrong(prefix + key, "must be a text that is not empty")
    return value
