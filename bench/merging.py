"""Reports that are measured in parts: a run replaces the sections that it measured, and leaves the others."""

from __future__ import annotations

import re
from pathlib import Path

HEADING = "\n## "
_COUNT = re.compile(r"[\d,]+ ")
_SIZED = re.compile(r"Recall of ([\d,]+) facts")  # of which there is one for each size


def merged(kept: str, new: str, command: str) -> str:
    """Return a report with the new one's beginning and sections, and those of the kept one that the new one lacks.

    A section is known by its heading, whatever the counts in it, but for the size that recall is measured at. Recall comes
    first, by its sizes, and the others as they came. Under each new heading stands the command.
    """
    beginning, *measured = new.split(HEADING)
    sections = {_kind(section): section for section in kept.split(HEADING)[1:]}
    for section in measured:
        title, _, rest = section.partition("\n")
        sections[_kind(section)] = f"{title}\n\n`{command}`\n{rest}"
    told = [sections[kind] for kind in sorted(sections, key=_size)]
    return HEADING.join([beginning.rstrip("\n") + "\n", *(section.strip("\n") + "\n" for section in told)])


def write(path: Path, new: str, command: str) -> None:
    """Merge a report into a file, or make the file."""
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(merged(kept, new, command), encoding="utf-8")


def _kind(section: str) -> str:
    title = section.partition("\n")[0]
    return title if _SIZED.match(title) else _COUNT.sub("", title)


def _size(kind: str) -> float:
    sized = _SIZED.match(kind)
    return float(sized[1].replace(",", "")) if sized else float("inf")
