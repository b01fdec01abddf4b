"""The page on embeddings does what it says, without a network."""

from __future__ import annotations

from console_page import run_commands
from markdown_page import run_page
from source_tree import ROOT
from unit.cli.command_line import run, store_path

__all__ = ["run", "store_path"]

PAGE = ROOT / "docs" / "howto" / "embeddings.md"


def test_the_examples_of_the_page_give_what_it_says():
    assert run_page(PAGE) >= 25


def test_the_commands_of_the_page_give_what_it_shows(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_commands(PAGE, run, monkeypatch) == 5


def test_a_question_without_words_is_asked_by_its_vector_at_the_command_line_as_in_code(run, tmp_path):
    (tmp_path / "vector.json").write_text("[1.0, 0.5]")
    told = ["--embedding-file", str(tmp_path / "vector.json")]
    assert run("remember", "The harbour was empty", "--id", "harbour", *told).code == 0
    for words in (["recall", ""], ["trace", ""], ["explain", "", "harbour"]):
        outcome = run(*words, *told)
        assert outcome.code == 0, outcome.err
        assert "harbour" in outcome.out
    assert run("recall", "").code == 2
