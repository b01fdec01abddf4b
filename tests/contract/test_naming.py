"""Names of fields on the wire and in Python, in messages too."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from perdure.contract import replies, requests
from perdure.contract.naming import camel_case, on_the_wire, python_names, snake_case


def names() -> Iterator[str]:
    for module in (requests, replies):
        for one in vars(module).values():
            if isinstance(one, type) and issubclass(one, msgspec.Struct):
                yield from one.__struct_fields__


@pytest.mark.parametrize("name", sorted({name for name in names() if "_" in name}))
def test_a_message_names_every_field_as_its_surface_does(name: str):
    assert on_the_wire(f"{name} is wrong") == f"{camel_case(name)} is wrong"
    assert python_names(f"scope.{camel_case(name)} is wrong") == f"scope.{name} is wrong"
    assert snake_case(camel_case(name)) == name


@pytest.mark.parametrize(
    ("in_python", "on_wire"),
    [
        (
            "reindex with embeddings=True (perdure reindex --embeddings)",
            "reindex with embeddings: true (perdure reindex --embeddings)",
        ),
        (
            "it was forgotten with block=True; use dry_run=False",
            "it was forgotten with block: true; use dryRun: false",
        ),
        ("k must be true or false, got 1", "k must be true or false, got 1"),
    ],
)
def test_a_flag_in_a_message_is_written_as_its_surface_does(in_python: str, on_wire: str):
    assert on_the_wire(in_python) == on_wire
    assert python_names(on_wire) == in_python
