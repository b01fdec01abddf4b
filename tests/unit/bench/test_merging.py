"""Reports that are measured in parts."""

from __future__ import annotations

from bench.merging import merged, write

FIRST = "# Title\n\nmachine: one\n\n## Recall of 1,000 facts\n\na\n\n## Writes\n\nb\n\n## 60 tenants of 1,000 facts\n\nc\n"


def test_a_part_that_is_measured_again_takes_the_place_of_its_like_and_the_others_stay():
    again = merged(FIRST, "# Title\n\nmachine: two\n\n## 1,000 tenants of 1,000 facts\n\nd\n", "run it")
    assert again == (
        "# Title\n\nmachine: two\n\n## Recall of 1,000 facts\n\na\n\n## Writes\n\nb\n\n"
        "## 1,000 tenants of 1,000 facts\n\n`run it`\n\nd\n"
    )


def test_recall_at_another_size_is_added_in_the_order_of_sizes():
    found = FIRST
    for size in ("1,000,000", "10,000", "1,000"):
        found = merged(found, f"# Title\n\n## Recall of {size} facts\n\nof {size}\n", "run it")
    titles = [line for line in found.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Recall of 1,000 facts",
        "## Recall of 10,000 facts",
        "## Recall of 1,000,000 facts",
        "## Writes",
        "## 60 tenants of 1,000 facts",
    ]
    assert "of 1,000\n" in found
    assert "\na\n" not in found


def test_the_first_part_makes_the_file(tmp_path):
    path = tmp_path / "report.md"
    write(path, "# Title\n\n## Writes\n\nb\n", "run it")
    assert path.read_text(encoding="utf-8") == "# Title\n\n## Writes\n\n`run it`\n\nb\n"
