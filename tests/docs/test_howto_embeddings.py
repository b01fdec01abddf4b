"""The page on embeddings does what it says, without a network."""

from __future__ import annotations

import re

import pytest

from markdown_page import run_page
from perdure import embedders
from perdure.embedders import HashingEmbedder, HttpEmbedder, OnnxEmbedder
from source_tree import ROOT


def test_the_examples_of_the_page_give_what_it_says():
    assert run_page(ROOT / "docs" / "howto" / "embeddings.md") >= 15


@pytest.mark.parametrize("kind", [OnnxEmbedder, HttpEmbedder, HashingEmbedder])
def test_the_reference_names_every_parameter_of_an_embedder(kind):
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{kind.__name__}` \| (.*) \|$", page, re.MULTILINE)
    told = set(re.findall(r"`(\w+)`", row))
    prefixes = {"query_prefix", "document_prefix"} if "the prefixes" in row else set()
    assert told | prefixes == set(kind.PARAMETERS)


def test_the_reference_lists_every_embedder():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    section = page.split("\n## Embedders\n", 1)[1].split("\n## ", 1)[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == set(embedders.__all__)
