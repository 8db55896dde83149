"""Writes the generated parts of docs/ anew: what stands between `<!-- generated: NAME -->` and `<!-- end -->`.

`python -m local.docs` writes, `python -m local.docs --check` only says what is stale.
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from local.api_reference import api_reference
from spotferry.domain.diagram import no_op_table, state_diagram

DOCS = Path(__file__).parent.parent / "docs"

PARTS: Mapping[str, Callable[[], str]] = {
    "state diagram": lambda: f"```mermaid\n{state_diagram()}\n```",
    "no-ops": no_op_table,
    "api": lambda: api_reference(DOCS / "openapi.yaml"),
}
"""What can be generated, by the name in its marker."""

_PART = re.compile(r"(<!-- generated: (?P<name>[^>]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def generated(text: str) -> str:
    """The document with every generated part as the code has it now."""
    return _PART.sub(lambda found: f"{found[1]}{PARTS[found['name']]()}{found[3]}", text)


def stale() -> dict[Path, str]:
    """The documents that are not as the code has them, and what they should be."""
    documents = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return {path: fresh for path, text in documents.items() if (fresh := generated(text)) != text}


def main() -> int:
    """Write what is stale, or only name it with --check; 1 if something was to be named."""
    check = "--check" in sys.argv[1:]
    for path, fresh in stale().items():
        sys.stderr.write(f"{path.relative_to(DOCS.parent)}: {'stale; run `make docs`' if check else 'written'}\n")
        if not check:
            path.write_text(fresh, encoding="utf-8")
    return 1 if check and stale() else 0


if __name__ == "__main__":
    sys.exit(main())
