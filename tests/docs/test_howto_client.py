"""The page on clients does what it says, on the real server in this process."""

from __future__ import annotations

import inspect
import re

from markdown_page import run_page
from perdure import Store
from perdure.client import Client, ClientStore
from source_tree import ROOT

PAGE = ROOT / "docs" / "howto" / "client.md"


def test_the_examples_of_the_page_give_what_it_says():
    assert run_page(PAGE) >= 17


def test_the_page_names_every_call_of_the_store_and_the_defaults_of_a_client():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    told = re.search(r"those that a server offers: (.*?); most", text)
    assert re.findall(r"`(\w+)`", told[1]) == [name for name in vars(ClientStore) if not name.startswith("_")]
    left = re.search(r"stays there: (.*?)\.", text)
    assert all(hasattr(Store, name) for name in re.findall(r"`(\w+)`", left[1]))
    defaults = {name: one.default for name, one in inspect.signature(Client).parameters.items()}
    assert f"`timeout_s` ({defaults['timeout_s']:g})" in text
    assert f"`long_timeout_s` ({defaults['long_timeout_s']:g})" in text
    assert f"({defaults['retries']} when absent)" in text
