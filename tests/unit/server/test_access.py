"""What a key allows: headers narrow and never widen, and no refusal tells what exists."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.contract.operations import OPERATIONS
from perdure.dispatch import BEYOND
from perdure.errors import Forbidden, InvalidRequest, InvalidTenant
from perdure.model.namespace import Namespace
from perdure.server.access import (
    Access,
    Told,
    check_role,
    decoded,
    makes_store,
    place,
    read_headers,
)
from perdure.server.keyring_authentication import ANYONE


def key(tenant="acme", principal=None, scope=None, role="admin"):
    return Access(tenant, principal, scope, role, "0" * 16)


FIXED = [(p, s) for p in (None, "alice", "") for s in (None, "work", "")]
SENT = [
    (t, p, s) for t in (None, "acme", "other") for p in (None, "alice", "bob") for s in (None, "work", "home")
]


@pytest.mark.parametrize("sent", SENT)
@pytest.mark.parametrize("fixed", FIXED)
def test_a_header_chooses_what_the_key_leaves_open_and_nothing_else(fixed, sent):
    principal, scope = fixed
    tenant, told_principal, told_scope = sent
    widens = (
        tenant == "other"
        or (principal is not None and told_principal not in (None, principal))
        or (scope is not None and told_scope not in (None, scope))
    )
    access, told = key(principal=principal, scope=scope), Told(*sent)
    if widens:
        with pytest.raises(Forbidden) as refused:
            place(access, told, default_principal="carol")
        assert (refused.value.message.startswith(BEYOND), refused.value.field, refused.value.details) == (
            True,
            None,
            {},
        )
        return
    allowed = place(access, told, default_principal="carol")
    assert allowed.tenant == "acme"
    right = principal if principal is not None else told_principal if told_principal is not None else "carol"
    assert allowed.namespace == Namespace(right, scope if scope is not None else told_scope or "")
    assert access.sees(allowed.namespace)


def test_a_key_without_a_principal_must_be_sent_one():
    with pytest.raises(InvalidRequest, match="Perdure-Principal") as refused:
        place(key(), Told())
    assert refused.value.field == "Perdure-Principal"


def test_what_is_about_the_store_needs_no_principal():
    assert place(key(), Told(scope="work"), needed=False).namespace == Namespace("", "work")


def test_without_keys_any_tenant_and_space_may_be_named_and_none_must():
    assert place(ANYONE, Told()).namespace == Namespace("", "")
    assert place(ANYONE, Told()).tenant == "default"
    assert place(ANYONE, Told(), default_principal="carol").namespace == Namespace("carol", "")
    allowed = place(ANYONE, Told("acme", "alice", "work"))
    assert (allowed.tenant, allowed.namespace) == ("acme", Namespace("alice", "work"))


ROLES = ("read", "write", "admin")


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_does_what_it_may_and_a_purge_takes_an_admin(role, name):
    operation = OPERATIONS[name]
    for request, needed in (
        ({}, operation.role),
        ({"purge": False}, operation.role),
        ({"purge": None}, operation.role),
        ({"purge": True}, "admin"),
        ({"purge": 1}, "admin"),
    ):
        if ROLES.index(role) >= ROLES.index(needed):
            check_role(key(role=role), operation, request)
        else:
            with pytest.raises(Forbidden, match=needed):
                check_role(key(role=role), operation, request)


def test_only_what_may_write_makes_a_store():
    assert {name for name, operation in OPERATIONS.items() if not makes_store(operation)} == {
        name for name, operation in OPERATIONS.items() if operation.role == "read"
    } | {"verify", "storeEvents", "export"}


def test_neither_an_access_nor_what_was_told_shows_a_name():
    values = (key(principal="canary", scope="canary"), Told("acme", "canary", "canary"))
    for value in (*values, place(values[0], Told())):
        assert "canary" not in repr(value)


@given(name=st.text(max_size=85).filter(str.isprintable))
@example("alice@example.com")
@example("50% of ä, +1 🎈")
def test_every_name_comes_through_a_header_as_it_was(name):
    value = quote(name, safe="").encode()
    told = read_headers([(b"perdure-principal", value), (b"PERDURE-SCOPE", value), (b"x-other", b"\xff")])
    assert (told.tenant, told.principal, told.scope) == (None, name, name)


@given(value=st.binary(max_size=40) | st.text("%0aAfFé2c+, x", max_size=12).map(str.encode))
@example(b"%")
@example(b"%c3%a9")
@example(b"%C0%80")
@example(b"%ed%a0%80")
@example(b"%%41")
@example(b"%2")
@example(b"%2g")
@example(b"a+b")
@example(b"a,b")
@example(b"\xc3\xa9")
@example(b"a\x00")
def test_a_value_is_decoded_exactly_or_refused(value):
    plain = all(0x21 <= byte <= 0x7E and byte != ord(",") for byte in value)
    escapes = value.split(b"%")[1:]
    whole = all(len(rest) >= 2 and all(c in b"0123456789abcdefABCDEF" for c in rest[:2]) for rest in escapes)
    try:
        right = unquote_to_bytes(value).decode() if plain and whole else None
    except UnicodeDecodeError:
        right = None
    if right is None:
        with pytest.raises(InvalidRequest) as refused:
            decoded(value, "Perdure-Principal")
        assert refused.value.field == "Perdure-Principal"
    else:
        assert decoded(value, "Perdure-Principal") == right


@pytest.mark.parametrize(
    "value",
    [b"%00", b"a%0ab", b"%7f", b"%c2%85", b"a" * 257, b"%41" * 257, b"a" * 1000, b"%F0%9F%8E%88" * 65],
)
def test_a_name_that_no_space_has_is_refused_with_the_header_and_not_with_its_value(value):
    for header in (b"Perdure-Principal", b"Perdure-Scope"):
        with pytest.raises(InvalidRequest) as refused:
            read_headers([(header, value)])
        assert refused.value.field == header.decode()
        assert value.decode() not in refused.value.message


@pytest.mark.parametrize(
    "value",
    [b"", b"a" * 65, b"a.b", b"../x", b"a%2Fb", b"%00", b"%c3%a4", b"a b", b"a,b", b"%zz", b"a" * 1000],
)
def test_a_malformed_tenant_is_an_invalid_tenant(value):
    with pytest.raises(InvalidTenant) as refused:
        read_headers([(b"Perdure-Tenant", value)])
    assert not value or value.decode() not in refused.value.message


def test_a_header_that_is_sent_twice_is_refused():
    for name, error in ((b"perdure-principal", InvalidRequest), (b"perdure-tenant", InvalidTenant)):
        with pytest.raises(error, match="twice"):
            read_headers([(name, b"a"), (name.upper(), b"a")])


def test_who_names_nobody_is_told_how_to_from_python_too():
    access = Access(tenant=None, principal=None, scope=None, role="read", key_id="k")
    with pytest.raises(InvalidRequest, match=r"client\.memory\(principal=") as caught:
        place(access, Told())
    assert caught.value.field == "Perdure-Principal"


@pytest.mark.parametrize("what", ["tenant", "principal", "scope"])
def test_a_refusal_says_which_bound_of_the_key_it_is_and_repeats_no_name(what):
    access = key(principal="alice", scope="work")
    with pytest.raises(Forbidden) as refused:
        place(access, Told(**{what: "canary"}), default_principal="carol")
    assert f"for one {what} alone" in refused.value.message
    assert f"Perdure-{what.title()}" in refused.value.message
    assert all(name not in refused.value.message for name in ("canary", "alice", "work", "acme"))
