"""Errors that name a member of a list."""

from __future__ import annotations

import pytest

from perdure.base.members import within
from perdure.errors import InvalidRequest


@pytest.mark.parametrize(
    ("message", "field", "told", "named"),
    [
        ("text holds no word", "text", "facts[1].text holds no word", "facts[1].text"),
        ("text.quote is long", "text", "facts[1].text.quote is long", "facts[1].text"),
        ("texts are many", "text", "facts[1]: texts are many", "facts[1].text"),
        ("a fact is a text", None, "facts[1]: a fact is a text", "facts[1]"),
    ],
)
def test_an_error_names_the_member_and_its_field_in_one_form(
    message: str, field: str | None, told: str, named: str
):
    with pytest.raises(InvalidRequest) as caught, within("facts[1]"):
        raise InvalidRequest(message, field=field)
    assert (caught.value.message, str(caught.value), caught.value.field) == (told, told, named)
