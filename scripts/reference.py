"""Writes the generated parts of docs/reference anew; with --check only says which pages are not current.

What stands between `<!-- reference: … -->` and `<!-- end -->` comes from docstrings, signatures, the contract, the
command line and the settings; everything else on those pages is written by hand.
"""

from __future__ import annotations

import sys

from reference_pages import pages


def main(arguments: list[str]) -> int:
    """Write or check the pages; return the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: scripts/reference.py [--check]", file=sys.stderr)
        return 2
    if arguments:
        stale = pages.stale()
        for page in stale:
            print(f"docs/reference/{page} is not current: run python scripts/reference.py", file=sys.stderr)
        return 1 if stale else 0
    for page, text in pages.written(pages.read()).items():
        (pages.FOLDER / page).write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
