"""backup at the command line, and what stats tells of room."""

from __future__ import annotations

from unit.cli.command_line import remember, texts


def test_a_backup_is_a_store_that_can_be_given_in_the_place_of_the_first(run, tmp_path):
    remember(run, "The kettle is blue")
    shown = run("backup", str(tmp_path / "copy"))
    assert (shown.code, shown.err) == (0, "")
    assert "The store is copied" in shown.out
    assert texts(run("list", "--json", "--store", str(tmp_path / "copy"))) == ["The kettle is blue"]


def test_as_json_it_tells_where_the_copy_is_and_how_large(run, tmp_path, monkeypatch):
    remember(run, "The kettle is blue")
    monkeypatch.chdir(tmp_path)
    told = run("backup", "copy", "--json").json["backup"]
    assert told["directory"] == str(tmp_path / "copy")
    assert told["sizeBytes"] == sum(path.stat().st_size for path in (tmp_path / "copy").iterdir()) > 0


def test_a_folder_that_holds_something_is_refused(run, tmp_path):
    remember(run, "The kettle is blue")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    refused = run("backup", str(tmp_path / "full"), "--json")
    assert refused.code == 2
    assert (refused.error["code"], refused.error["field"]) == ("invalid_request", "directory")


def test_a_folder_within_the_store_is_refused(run, store_path):
    remember(run, "The kettle is blue")
    refused = run("backup", str(store_path / "copy"))
    assert refused.code == 2
    assert "within the store" in refused.err


def test_where_there_is_no_store_nothing_is_copied(run, tmp_path, store_path):
    refused = run("backup", str(tmp_path / "copy"), "--json")
    assert (refused.code, refused.error["code"]) == (1, "failed")
    assert not (tmp_path / "copy").exists()
    assert not store_path.exists()


def test_stats_tell_what_a_purge_would_give_back(run):
    remember(run, "The kettle is blue", "--id", "kettle")
    told = run("stats", "--json").json
    assert told["sizeBytes"] > told["reclaimableBytes"] > 0
    assert "reclaimableBytes" in run("stats").out
