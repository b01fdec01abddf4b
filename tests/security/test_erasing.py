"""Erasing one person's memory over HTTP takes that one's, all of it, and nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from .asking import code
from .site import Site

PEOPLE = [
    (tenant, principal, scope)
    for tenant in ("a", "b")
    for principal in ("u1", "u2")
    for scope in ("", "work")
]


@pytest.fixture
def peopled(site: Site) -> Site:
    """Two tenants of two people with two scopes each, and one fact and one page in each."""
    for tenant, principal, scope in PEOPLE:
        key = site.key(tenant, principal=principal, scope=scope)
        own = f"{tenant}-{principal}-{scope}"
        assert site.call("remember", {"id": "f", "text": f"zq {own}", "subject": "s"}, key).status_code == 200
        assert site.call("putDocument", {"id": "d", "text": f"page of {own}"}, key).status_code == 200
    return site


def left(site: Site) -> set[tuple[str, str, str]]:
    """Return whose facts and pages are still there, whole."""
    found = set()
    for tenant, principal, scope in PEOPLE:
        key = site.key(tenant, "read", principal=principal, scope=scope)
        fact, page = (
            site.call("get", {"id": "f"}, key).json()["fact"],
            site.call("getDocument", {"id": "d"}, key).json()["document"],
        )
        assert (fact is None) == (page is None)
        if fact is not None:
            assert fact["text"] == f"zq {tenant}-{principal}-{scope}"
            found.add((tenant, principal, scope))
    return found


def test_erasing_one_person_of_one_tenant_leaves_everybody_else_whole(peopled):
    reply = peopled.call("erase", {"principal": "u1"}, peopled.key("a", "admin"))
    assert reply.status_code == 200
    assert left(peopled) == {one for one in PEOPLE if one[:2] != ("a", "u1")}
    assert peopled.call("spaces", {}, peopled.key("a", "read")).json()["spaces"] == [
        {"principal": "u2", "scope": ""},
        {"principal": "u2", "scope": "work"},
    ]


def test_erasing_one_scope_leaves_the_person_s_other_one(peopled):
    assert (
        peopled.call("erase", {"principal": "u1", "scope": "work"}, peopled.key("a", "admin")).status_code
        == 200
    )
    assert left(peopled) == set(PEOPLE) - {("a", "u1", "work")}


def test_a_dry_run_erases_nobody(peopled):
    assert (
        peopled.call("erase", {"principal": "u1", "dryRun": True}, peopled.key("a", "admin")).json()["dryRun"]
        is True
    )
    assert left(peopled) == set(PEOPLE)


@pytest.mark.parametrize(
    "request_",
    [
        {}, {"principal": None}, {"scope": "work"}, {"principal": ""}, {"principal": "U1"},
        {"principal": "u"}, {"principal": "u%"},
        {"principal": "*"}, {"principal": "u1 "}, {"principal": "u1", "scope": "nothing"},
        {"principal": ["u1"]}, {"user_id": "u1"},
        {"principal": "u1", "filter": {}}, {"principal": "u1", "scope": "*"}, {"principal": "u1\u0000"},
        {"all": True},
    ],
)  # fmt: skip
def test_erasing_nobody_or_somebody_unknown_erases_nobody(peopled, request_):
    peopled.call("erase", request_, peopled.key("a", "admin"))
    assert left(peopled) == set(PEOPLE)


def test_an_empty_filter_forgets_one_space_at_most_and_an_empty_scope_nothing(peopled):
    key = peopled.key("a", "admin", principal="u1", scope="")
    for scope in (
        {},
        {"kind": "ids", "ids": []},
        {"kind": "subject", "subject": ""},
        {"kind": "matching", "metadata": {}},
        {"kind": "tag"},
        None,
        [],
    ):
        peopled.call("forget", {"scope": scope}, key)
        assert left(peopled) == set(PEOPLE), scope
    for scope in ({"kind": "filter", "filter": {}}, {"kind": "all"}):
        peopled.call("forget", {"scope": scope}, key)
        for tenant, principal, place in set(PEOPLE) - {("a", "u1", "")}:
            reader = peopled.key(tenant, "read", principal=principal, scope=place)
            assert peopled.call("get", {"id": "f"}, reader).json()["fact"] is not None


def test_a_key_erases_no_further_than_it_reaches(peopled):
    for grant, request in [
        ({"principal": "u1"}, {"principal": "u2"}),
        ({"principal": "u1", "scope": "work"}, {"principal": "u1"}),
        ({"principal": "u1", "scope": "work"}, {"principal": "u1", "scope": ""}),
        ({"scope": "work"}, {"principal": "u1"}),
    ]:
        reply = peopled.call("erase", request, peopled.key("a", "admin", **grant))
        assert (reply.status_code, code(reply)) == (403, "forbidden")
    assert peopled.call("erase", {"principal": "u1"}, peopled.key("a", "write")).status_code == 403
    assert left(peopled) == set(PEOPLE)
    assert (
        peopled.call("erase", {"principal": "u1"}, peopled.key("a", "admin", principal="u1")).status_code
        == 200
    )
    assert left(peopled) == {one for one in PEOPLE if one[:2] != ("a", "u1")}


def test_what_was_erased_is_in_no_file_and_is_not_there_after_a_restart(peopled):
    peopled.call("erase", {"principal": "u1"}, peopled.key("a", "admin"))
    assert peopled.call("purge", {}, peopled.key("a", "admin")).status_code == 200
    peopled.restart()
    assert left(peopled) == {one for one in PEOPLE if one[:2] != ("a", "u1")}
    files = [path for path in Path(peopled.directory).rglob("*") if path.is_file()]
    assert not [path.name for path in files if b"a-u1-" in path.read_bytes()]
    assert [path for path in files if b"a-u2-" in path.read_bytes()]
