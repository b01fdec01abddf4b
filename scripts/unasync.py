"""Makes the synchronous client of the asynchronous one.

    python scripts/unasync.py           write src/perdure/client/synchronous
    python scripts/unasync.py --check   only say whether it is what would be written

The two differ in a few words; everything else, documentation included, is told once.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "src" / "perdure" / "client"
SOURCE, TARGET = CLIENT / "asynchronous", CLIENT / "synchronous"
MADE = "# Made of {name} by scripts/unasync.py: change that file, and run it.\n"
# Else it would depend on which files are there already how imports are sorted.
FIRST_PARTY = ("--config", 'lint.isort.known-first-party=["perdure"]')
WORDS = [
    (
        r"The client for asyncio\. What is beside it in `synchronous` is made of this by scripts/unasync\.py\.",
        "The client that waits for each answer.",
    ),
    (r"perdure\.client\.asynchronous", "perdure.client.synchronous"),
    (r"\basync (?=def|for|with)", ""),
    (r"`async with`", "`with`"),
    (r"\bawait ", ""),
    (r"\b__a(?=enter__|exit__)", "__"),
    (r"\b_?Async(?=[A-Z])", ""),
    (r"\b(pause|apart)_async\b", r"\1"),
    (r"\ba(?=close\b|read\b|iter_bytes\b)", ""),
]


def made(path: Path) -> str:
    """Return the synchronous module of an asynchronous one, formatted."""
    text = path.read_text(encoding="utf-8")
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    text = MADE.format(name=path.relative_to(CLIENT.parent.parent).as_posix()) + text
    name_of = ("--stdin-filename", str(TARGET / path.name))
    fixed = _ruff(
        text,
        "check",
        "--quiet",
        "--fix",
        "--unsafe-fixes",
        "--select",
        "I,UP028",
        *FIRST_PARTY,
        *name_of,
        "-",
    )
    return _ruff(fixed, "format", *name_of, "-")


def _ruff(text: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


def main() -> int:
    wanted = {path.name: made(path) for path in sorted(SOURCE.glob("*.py"))}
    there = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.py")}
    if "--check" in sys.argv[1:]:
        stale = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
        print(
            "\n".join(f"{name} is not current: run scripts/unasync.py" for name in stale),
            end="\n" * bool(stale),
        )
        return 1 if stale else 0
    TARGET.mkdir(exist_ok=True)
    for name in there.keys() - wanted.keys():
        (TARGET / name).unlink()
    for name, text in wanted.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
