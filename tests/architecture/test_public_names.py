"""What `perdure` exports: few names, sorted, all there, all documented."""

from __future__ import annotations

import pytest

import perdure

NAMES_MAX = 60


def test_the_public_names_are_sorted_and_few():
    assert list(perdure.__all__) == sorted(set(perdure.__all__))
    assert len(perdure.__all__) <= NAMES_MAX


@pytest.mark.parametrize("name", perdure.__all__)
def test_every_public_name_is_there_and_has_a_docstring(name):
    assert getattr(perdure, name).__doc__


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Manager"):
        _ = perdure.Manager
