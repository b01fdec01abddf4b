"""Lists the names that a description of another library uses: `python scripts/seed_names.py FILE... > NAMES`.

Made once for each of the lists in tests/docs/seed_names, which the pages in docs/coming-from are held against. It
takes what is written as code, what looks like a name anywhere else, and the members of lists of fields; it leaves out
what belongs to a language or its libraries, and the texts and variables of examples.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
TEXT_OR_REMARK = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|//[^\n]*|#[^\n]*|←[^\n]*")
VALUE = re.compile(r"^[\"']([a-z][\w-]*)[\"']$")  # a text in an example that is a value of an option
WORD = re.compile(r"[A-Za-z_][\w]*(?:-[a-z]\w*)*")
TELLING = re.compile(
    r"\b(?:[a-z]+(?:_[a-z0-9]+)+|[A-Z]+(?:_[A-Z0-9]+)+|[A-Z]{6,}|[a-z]+(?:[A-Z][a-z0-9]*)+"
    r"|(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*|[A-Z]{3,}[a-z]{2,}|SQLite[A-Z]\w+|corrects|trace|cosine|unit|metric|normalization|aliases|tools)\b"
)
CALL = re.compile(r"^(\w+)\(([^)]*)\)$", re.MULTILINE)  # a heading that is a signature
MEMBER = re.compile(r"^\W+ ([a-z]\w*)(?::|\(|$)", re.MULTILINE)
CELL = re.compile(r"^\| ([a-z]\w*(?: / (?:\.\.)?\w+)*)(?:\([^)]*\))?(?: / (\w+)\(\))? \|", re.MULTILINE)
TYPE = re.compile(
    r"\*\*[A-Z]\w+\*\*(?: order)?(?: \([^)]*\))?[:=]?([^*\n]*)"
)  # a type in bold, then its members

LANGUAGES = (
    "as async await bool class const const else enum except extends f32 false fn for from if impl import in int let "
    "match mut new None Ok option Option pub require return Result self Self Some str String struct true True False "
    "try use usize Vec Arc std sync anyhow async_trait todo Default default dt datetime print rust js python toml sh "
    "Date cargo test example release run version path localhost http features and is with of the a an or to"
)


PROSE = (
    "DD MM YYYY MEMORY README REPLACE INSERT IMMEDIATE DELETE POST NumPy SQLite LongMemEval macOS F_FULLFSYNC XVg6Hu6H "
    "api_reference trace.candidates_scored trace.candidates_seen trace.rejected trace.results abort age all alice api "
    "assistant-observation calibration-session city home-1 home-2 then why now file files map method number list only "
    "op opaque order parsing prefix exactly field swap trimmed u64 what hex inverse check empty absent safe no none null "
    "foo-bar isalnum len lex lower max raw exp a3s tests docs md rs vec bin json jsonl tmp db uuid pyi into op "
    "whole_seconds number_of_terms operation.status value words core system config index item token tokens item "
    "experimental snake_case camelCase camel MyStore dependencies FORMAT PERSISTED element with_ warm-sdk v1 v2 halfLife "
    "forget_equivalence_ sha256 memory docs benchmarks store_text result language"
)


def names(text: str) -> Iterator[str]:
    for match in FENCE.finditer(text):
        code = match[2]
        for part in TEXT_OR_REMARK.findall(code):
            yield from VALUE.findall(part)
        yield from WORD.findall(TEXT_OR_REMARK.sub(" ", code))
    prose = FENCE.sub("", text)
    for span in INLINE.findall(prose):
        yield from WORD.findall(span)
    yield from TELLING.findall(INLINE.sub("", prose))
    for name, arguments in CALL.findall(prose):
        yield name
        yield from (one.split("=")[0].strip() for one in arguments.split(",") if one.strip())
    yield from MEMBER.findall(prose)
    for cells in CELL.findall(prose):
        yield from (name for cell in cells for name in WORD.findall(cell))
    for members in TYPE.findall(prose):
        yield from re.findall(r"(?:^|[,:|( ] ?)([a-z]\w*)(?=[,.\[?;(|)]|$)", members.replace("rejected", ""))


def main() -> None:
    found = {name for path in sys.argv[1:] for name in names(Path(path).read_text(encoding="utf-8"))}
    sys.stdout.writelines(
        f"{name}\n"
        for name in sorted(found - set(LANGUAGES.split()) - set(PROSE.split()))
        if (len(name) > 1 or name == "k") and not name.startswith("_")
    )


if __name__ == "__main__":
    main()
