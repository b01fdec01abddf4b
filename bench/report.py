"""What a bench prints, and keeps as a Markdown file."""

from __future__ import annotations


class Report:
    """Lines of a Markdown file, printed as they come."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str = "") -> None:
        self.lines.append(line)
        print(line, flush=True)
