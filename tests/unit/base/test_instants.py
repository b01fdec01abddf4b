"""Instants: every form of a moment gives the same milliseconds, and comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.base.instants import EARLIEST, LATEST, find_millis, to_datetime, to_iso, to_millis
from perdure.errors import InvalidRequest

millis = st.integers(EARLIEST, LATEST)
offsets = st.integers(-24 * 60 + 1, 24 * 60 - 1).map(lambda minutes: timedelta(minutes=minutes))


def exact(moment: int) -> datetime:
    """The moment by the calendar alone, without our code."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment)


@given(millis)
def test_a_moment_comes_back_from_every_form(moment):
    shown = to_datetime(moment)
    assert shown == exact(moment)
    assert shown.tzinfo is UTC
    for form in (moment, shown, shown.replace(tzinfo=None), to_iso(moment), shown.isoformat()):
        assert to_millis(form, field="at") == moment
        assert find_millis(form, field="at") == moment
    assert find_millis(None, field="at") is None
    assert datetime.fromisoformat(to_iso(moment)) == shown
    assert to_iso(moment).endswith("Z")


@given(millis, millis)
def test_iso_text_of_one_length_sorts_as_moments_do(a, b):
    whole = [moment - moment % 1000 for moment in (a, b)]
    assert (to_iso(whole[0]) < to_iso(whole[1])) == (whole[0] < whole[1])


@given(st.datetimes(timezones=offsets.map(timezone)))
def test_an_offset_is_taken_off_and_never_overflows_at_the_edges(local):
    expected = (local.replace(tzinfo=None) - datetime(1970, 1, 1) - local.utcoffset()) // timedelta(
        milliseconds=1
    )
    if EARLIEST <= expected <= LATEST:
        assert to_millis(local, field="at") == expected
        assert to_millis(local.isoformat(), field="at") == expected
    else:
        for form in (local, local.isoformat()):
            with pytest.raises(InvalidRequest) as caught:
                to_millis(form, field="at")
            assert caught.value.field == "at"


@given(st.datetimes(), st.integers(0, 999_999))
def test_parts_below_a_millisecond_floor_also_before_1970(day, microsecond):
    local = day.replace(microsecond=microsecond)
    floored = local.replace(microsecond=microsecond // 1000 * 1000)
    assert to_datetime(to_millis(local, field="at")).replace(tzinfo=None) == floored
    assert to_millis(local.isoformat(), field="at") == to_millis(floored, field="at")


class Nowhere(tzinfo):
    """A zone that does not know its offset: the datetime is as good as naive."""

    def utcoffset(self, when):
        return None


class Broken(tzinfo):
    """A zone that answers with anything at all."""

    def __init__(self, answer):
        self._answer = answer

    def utcoffset(self, when):
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


class Pretending(datetime):
    """A datetime that gives an offset of its own, and cannot be copied."""

    answer: object = None

    def utcoffset(self):
        return self.answer

    def replace(self, **changes):
        raise AssertionError("not to be called")


@pytest.mark.parametrize(
    "answer",
    [
        "+01:00",
        3600,
        timedelta(days=1),
        -timedelta(days=1),
        OSError(),
        RuntimeError(),
        LookupError(),
        TypeError(),
    ],
    ids=repr,
)
def test_a_zone_that_fails_or_answers_nonsense_is_refused_by_field(answer):
    with pytest.raises(InvalidRequest, match=r"^at has a time zone") as caught:
        to_millis(datetime(2024, 1, 1, tzinfo=Broken(answer)), field="at")
    assert caught.value.field == "at"


@pytest.mark.parametrize("answer", ["+01:00", 3600, 1.5, timedelta(days=1), timedelta.max, timedelta.min])
def test_a_datetime_of_another_type_with_a_nonsense_offset_is_refused_by_field(answer):
    when = Pretending(2024, 1, 1)
    when.answer = answer
    with pytest.raises(InvalidRequest, match=r"^at has a time zone"):
        to_millis(when, field="at")
    when.answer = timedelta(hours=1)
    assert to_millis(when, field="at") == to_millis("2024-01-01T00:00+01:00", field="at")


def test_an_error_that_only_the_callers_zone_knows_passes_through():
    class OwnError(Exception):
        pass

    with pytest.raises(OwnError):
        to_millis(datetime(2024, 1, 1, tzinfo=Broken(OwnError())), field="at")


FORMS = {
    "1970-01-01": 0,
    "1970-01-01T00:00": 0,
    "1970-01-01T00:00:00": 0,
    "1970-01-01 00:00:00Z": 0,
    "1970-01-01t00:00:00z": 0,
    "1970-01-01T02:00:00+02:00": 0,
    "1970-01-01T02:00:00+0200": 0,
    "1969-12-31T12:30:00-11:30": 0,
    "1970-01-01T00:00:00 +00:00": 0,
    " 1970-01-01 ": 0,
    "1970-01-01T00:00:00.1": 100,
    "1970-01-01T00:00:00,12": 120,
    "1970-01-01T00:00:00.1239": 123,
    "1970-01-01T00:00:00.999999999Z": 999,
    "1969-12-31T23:59:59.9999Z": -1,
    "1969-12-31T23:59:59.5Z": -500,
    "1972-02-29": 68_169_600_000,
    "0001-01-01": EARLIEST,
    "0001-01-01T23:59:00+23:59": EARLIEST,
    "9999-12-31T23:59:59.999999Z": LATEST,
    "9999-12-31T23:59:59.999+00:00": LATEST,
}


@pytest.mark.parametrize(("text", "expected"), FORMS.items())
def test_iso_text_in_its_usual_spellings_is_read(text, expected):
    assert to_millis(text, field="at") == expected


def test_a_zone_without_an_offset_means_utc():
    assert to_millis(datetime(1970, 1, 1, tzinfo=Nowhere()), field="at") == 0


BAD_TEXT = [
    *(
        "",
        " ",
        "now",
        "banana",
        "1970",
        "1970-01",
        "1970-1-1",
        "70-01-01",
        "19700101",
        "1970-01-01T",
        "1970-W01-1",
    ),
    *(
        "1970-01-01T00",
        "1970-01-01T24:00",
        "1970-01-01T00:60",
        "1970-01-01T00:00:60",
        "1970-00-01",
        "1970-13-01",
    ),
    *(
        "1970-01-32",
        "1970-02-29",
        "1970-01-01T00:00:00.",
        "1970-01-01T00:00:00.1234567890",
        "1970-01-01+02:00",
    ),
    *("1970-01-01T00:00+24:00", "1970-01-01T00:00+02:60", "1970-01-01T00:00+2", "+1970-01-01", "-0001-01-01"),
    *(
        "0000-12-31",
        "10000-01-01",
        "١٩٧٠-٠١-٠١",
        "1970-01-01T00:00:00Z\0",
        "1970-01-01\n1970-01-01",
        "\ud800",
    ),
    *("0", "1e3", "9999-12-31T23:59:59.999-00:01", "0001-01-01T00:00+00:01"),
]


@pytest.mark.parametrize("text", BAD_TEXT)
def test_other_text_is_refused_by_name_and_not_echoed(text):
    with pytest.raises(InvalidRequest) as caught:
        to_millis(text, field="as_of")
    assert caught.value.field == "as_of"
    assert str(caught.value).startswith("as_of ")
    assert len(text.strip()) < 3 or text not in str(caught.value)


@pytest.mark.parametrize(
    "value", [True, False, None, 1.0, float("nan"), b"1970-01-01", [0], timedelta(0), {}]
)
def test_a_value_of_another_type_is_no_moment(value):
    with pytest.raises(InvalidRequest) as caught:
        to_millis(value, field="as_of")
    assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [EARLIEST - 1, LATEST + 1, 2**63, -(2**63), 10**5000],
    ids=["early", "late", "2**63", "-2**63", "huge"],
)
def test_a_number_outside_the_calendar_is_refused(value):
    with pytest.raises(InvalidRequest, match="1 to 9999"):
        to_millis(value, field="at")
    assert to_millis(EARLIEST, field="at") == EARLIEST
    assert to_millis(LATEST, field="at") == LATEST
