"""A message that counts says `1 fact` and `2 facts`: whatever may be one is told by `counted`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.base.text import counted
from source_tree import modules, name_of

NOUNS = (
    "answers|anchors|bits|bytes|candidates|cases|characters|copies|days|digits|dimensions|"
    "documents|drafts|entries|events|facts|files|findings|groups|hits|ids|items|"
    "keys|labels|lines|links|members|memories|milliseconds|nodes|numbers|others|pages|"
    "places|postings|processes|purges|quotes|readers|records|relations|requests|revisions|rows|"
    "seconds|sessions|sources|spaces|stores|tenants|terms|texts|times|tokens|turns|"
    "units|values|vectors|versions|words"
)
COUNTS = re.compile(rf" (?:more |other |of the )?(?:{NOUNS})\b")
NEVER_ONE = re.compile(r"(?:\w+\.)*_?[A-Z][A-Z_]+(?:\.\w+)?|.*_max|.*\b_?[A-Z_]*MAX\b.*")
"""A constant, or a limit: what these are is known, and is more than one."""
ONLY_MORE = {
    ("base/canonical.py", "size"): "over its limit",
    ("base/canonical.py", "sys.get_int_max_str_digits()"): "640 at least",
    ("base/disk.py", "free"): "a file system gives room in blocks",
    ("base/ids.py", "most"): "a limit",
    ("base/instants.py", "shown_number(millis)"): "out of the range of years",
    ("base/sqlite/ciphers.py", "128 * n * r"): "a multiple",
    ("base/text.py", "value.bit_length()"): "over 120",
    ("cli/asking.py", "size"): "2 at least",
    ("cli/backups.py", "size"): "a file's, with its header",
    ("cli/encrypting.py", "stats.size_bytes"): "likewise",
    ("cli/erasing.py", "size"): "likewise",
    ("model/node_snapshot.py", "self.byte_count"): "2 at least",
    ("vectors/partitioned/sqlite/rows.py", "size"): "a file's, with its header",
    ("vectors/partitioned/types.py", "4 * self.dimension"): "a multiple",
}
OVER_A_LIMIT = re.compile(r"at most|more than|\b1 to |over its limit|or more|must take|limit of")
"""In a text, that what it counts is over a limit, or outside a range that begins with 1."""


def texts(path: Path) -> Iterator[ast.JoinedStr]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            said = "".join(str(one.value) for one in node.values if isinstance(one, ast.Constant))
            if not OVER_A_LIMIT.search(said):
                yield node


def counts() -> Iterator[tuple[str, int, str]]:
    """Yield file, line and expression of every number that stands in a text before several of something."""
    for path in modules():
        for node in texts(path):
            for told, after in pairwise(node.values):
                is_count = isinstance(told, ast.FormattedValue) and isinstance(after, ast.Constant)
                if is_count and COUNTS.match(str(after.value)):
                    yield name_of(path), node.lineno, ast.unparse(told.value)


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 facts"), (1, "1 fact"), (2, "2 facts"), (1.0, "1.0 fact")]
)
def test_one_is_told_of_in_the_singular(number, told):
    assert counted(number, "fact") == told


@given(st.integers(min_value=0), st.sampled_from(NOUNS.split("|")))
def test_a_count_names_its_number_and_one_of_the_two_forms(number, noun):
    assert counted(number, "one", noun) == f"{number} {'one' if number == 1 else noun}"


def test_no_text_says_several_of_what_may_be_one():
    found = [
        (file, line, expression)
        for file, line, expression in counts()
        if not NEVER_ONE.fullmatch(expression) and (file, expression) not in ONLY_MORE
    ]
    assert found == []
