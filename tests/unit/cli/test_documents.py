"""Documents at the command line: what people see, what is asked, how failures end."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.documents import EXCERPT, excerpt


@pytest.fixture
def oven(run):
    assert (
        run("documents", "put", "oven", "Descale it twice a year.", "--metadata", '{"room":"kitchen"}').code
        == 0
    )


def test_a_document_is_stored_replaced_and_shown(run, oven):
    told = run("documents", "put", "oven", "-", stdin="Descale it monthly.\nWith vinegar.\n")
    assert told.out.split() == ["outcome", "replaced", "id", "oven", "version", "2"]
    shown = run("documents", "get", "oven").out
    assert shown.splitlines() == ["id       oven", "version  2", "", "Descale it monthly.", "With vinegar."]
    assert (
        run("documents", "get", "oven", "--json").json["document"]["text"]
        == "Descale it monthly.\nWith vinegar."
    )
    assert run("documents", "has", "oven").out == "yes\n"


def test_what_is_not_there_is_exit_code_1_and_a_line(run, oven):
    for command in (("get", "nope"), ("has", "nope"), ("delete", "nope", "--yes"), ("delete", "nope")):
        outcome = run("documents", *command)
        assert outcome.code == 1
    missing = run("documents", "get", "nope", "--json")
    assert (missing.code, missing.json) == (1, {"document": None})
    assert "there is no document with that id" in missing.err
    assert run("documents", "delete", "nope", "--yes", "--json").json["deleted"] is False


def test_a_delete_shows_the_document_and_asks(run, oven):
    refused = run("documents", "delete", "oven", stdin="n\n")
    assert refused.code == 1
    assert "Descale it twice a year." in refused.err
    assert run("documents", "has", "oven").code == 0
    done = run("documents", "delete", "oven", stdin="y\n")
    assert (done.code, done.out) == (0, "The document is erased.\n")
    assert run("documents", "has", "oven").code == 1


def test_a_delete_keeps_its_certificate(run, oven, tmp_path):
    kept = tmp_path / "erased.json"
    assert run("documents", "delete", "oven", "--yes", "--purge", "--certificate", str(kept)).code == 0
    assert json.loads(kept.read_text())["facts"] == 1
    assert run("verify", "--erased", str(kept)).code == 0


def test_a_version_that_is_another_is_a_conflict(run, oven):
    refused = run("documents", "put", "oven", "x", "--if-version", "0", "--json")
    assert (refused.code, refused.error["code"], refused.error["details"]["current"]) == (1, "conflict", 1)
    assert (
        run("documents", "delete", "oven", "--if-version", "7", "--yes", "--json").error["code"] == "conflict"
    )
    assert run("documents", "put", "oven", "x", "--if-version", "soon").code == 2


def test_a_search_shows_the_place_that_matches_in_a_long_text(run):
    long = "introduction " * 3_000 + "replace the rubber gasket " + "appendix " * 3_000
    assert run("documents", "put", "manual", "-", stdin=long).code == 0
    shown = run("documents", "search", "rubber gasket").out
    assert "rubber gasket" in shown
    assert "manual" in shown
    assert len(shown) < 1_000
    hit = run("documents", "search", "rubber gasket", "--json").json["results"][0]
    assert "rubber gasket" in hit["text"]
    assert run("documents", "search", "zebra").out == "Nothing matches.\n"


def test_a_listing_goes_on_with_its_cursor(run, oven):
    run("documents", "put", "a", "first of all")
    run("remember", "a fact", "--id", "zz")
    page = run("documents", "list", "--limit", "2")
    assert "2 of 3 documents." in page.out
    cursor = page.out.splitlines()[-1].removeprefix("More: --cursor ")
    rest = run("documents", "list", "--cursor", cursor, "--json").json
    assert [one["id"] for one in rest["items"]] == ["zz"]
    kitchen = run("documents", "list", "--filter", '{"room":"kitchen"}', "--json").json
    assert [one["id"] for one in kitchen["items"]] == ["oven"]


def test_a_read_makes_no_store_and_a_delete_fails_where_there_is_none(run, store_path):
    assert run("documents", "list").code == 0
    assert run("documents", "search", "x").code == 0
    assert run("documents", "delete", "x", "--yes").code == 1
    assert not store_path.exists()


@given(st.text(max_size=600), st.text(max_size=20))
def test_an_excerpt_is_a_part_of_the_text_and_holds_the_first_word_that_is_there(text, words):
    told = excerpt(text, words)
    assert told.removeprefix("… ").removesuffix(" …") in text
    assert len(told) <= EXCERPT + 4
    there = [place for word in words.lower().split() if (place := text.lower().find(word)) >= 0]
    if there and len(text.lower()) == len(text):
        first = min(there)
        assert text[first] in told


def test_what_has_no_vector_is_counted_and_embedded(run, tmp_path):
    run("remember", "a fact")
    run("documents", "put", "d", "a text")
    assert run("embed-missing", "--dry-run").out == "2 texts have no vector. Nothing was changed.\n"
    refused = run("embed-missing", "--json")
    assert (refused.code, refused.error["code"]) == (2, "invalid_request")
    config = tmp_path / "config.json"
    config.write_text('{"embedder":"hashing"}')
    with_it = ("--config", str(config))
    assert run("embed-missing", "--limit", "1", *with_it).out == "1 embedded; 1 text has no vector.\n"
    assert run("embed-missing", *with_it).out == "1 embedded; 0 texts have no vector.\n"
    again = run("reindex", "--embeddings", *with_it)
    assert "2 texts were embedded." in again.out
    assert run("stats", "--json").json["withoutVector"] == 0
