"""What is wrong with an entry or a line is told by the names that the file has."""

from __future__ import annotations

import io
import json

import pytest

from perdure import ImportFailed, Store
from perdure.importers.importing import Target, import_entries
from perdure.importers.sources import read_file


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("wrong", "begins"),
    [
        ({"validFrom": 5, "validTo": 5}, "validTo ("),
        ({"eventTime": "soon"}, "eventTime is not"),
        ({"tags": ["a", ""]}, "tags[1] must"),
        ({"kind": "valid_from"}, "kind must be one of"),
    ],
)
def test_a_bad_entry_of_a_file_of_facts_is_told_by_its_own_names(tmp_path, wrong, begins, lenient):
    file = tmp_path / "facts.jsonl"
    file.write_text(json.dumps({"text": "x", **wrong}) + "\n")
    with Store.open(":memory:") as store:
        report = import_entries(read_file(file), Target(store), lenient=lenient)
    (bad,) = report.bad
    assert bad.reason.startswith(begins)
    assert "valid_to" not in bad.reason
    if "kind" in wrong:
        assert bad.reason.endswith("got 'valid_from'")


def test_a_bad_line_of_an_export_is_told_by_its_own_names():
    with Store.open(":memory:") as store:
        store.memory().remember("x", valid_from=5, valid_to=9)
        whole = b"".join(store.export_lines())
    damaged = whole.replace(b'"validTo":9', b'"validTo":5')
    assert damaged != whole
    with Store.open(":memory:") as store, pytest.raises(ImportFailed) as failed:
        store.import_(io.BytesIO(damaged))
    (problem, *_) = failed.value.details["problems"]
    assert "validTo" in problem["reason"]
    assert "valid_to" not in problem["reason"]
