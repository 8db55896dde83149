"""Small trees of files, directories and links, and patterns that may name some of them."""

from contextlib import suppress
from pathlib import Path

from hypothesis import strategies as st

_STEP = st.sampled_from(["**", "*", ".", "a", "b", "l", "?", "[ab]", "a*", "*.x"])
PATTERNS = st.lists(st.lists(_STEP, min_size=1, max_size=4).map("/".join), min_size=1, max_size=3)
TREES = st.dictionaries(
    st.lists(st.sampled_from(["a", "b", "c.x", "a!"]), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["file", "directory", ".", "a", "a/b", "..", "/etc"]),
    max_size=8,
)


def grown(root: Path, tree: dict[str, str]) -> Path:
    """A tree of files, directories and links, as far as they go together."""
    root.mkdir(parents=True)
    for path, kind in tree.items():
        place = root / path
        with suppress(OSError, RuntimeError):  # the latter is what links in a circle are
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.resolve().is_relative_to(root.resolve()):
                if kind == "directory":
                    place.mkdir()
                elif kind == "file":
                    place.write_text(path)
                else:
                    place.symlink_to(kind)
    return root
