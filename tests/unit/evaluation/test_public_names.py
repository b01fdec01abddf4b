"""What `perdure.evaluation` offers is documented, name by name."""

from __future__ import annotations

import re

import perdure.evaluation
from source_tree import ROOT


def test_the_reference_lists_every_name_and_no_other():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    section = page.split("\n## Evaluation\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(perdure.evaluation.__all__)
