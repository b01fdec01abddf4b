"""What a key does not reach might as well not be there: no reply tells whether it is."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .asking import change, code, conversation, requests, told
from .site import Site

# Random, or keyed by a secret of the store: ids that were made up, those of keys, cursors, and what a
# certificate seals. And the places of events, which are counted over the whole store.
KEYED = re.compile(
    rb'"(?:store|seal|cursor|historyId|headDigest|digest)":"[^"]*"|"(?:mem-)?[0-9a-f]{32}"'
    rb'|"event":\{[^}]*\}|(?<=\{)"sequence":\d+,"type"|"actor":"[0-9a-f]{16}"'
)
CURSORS = ("list", "changes", "listDocuments", "events")


def populate(site: Site) -> None:
    """Fill the memories of others: another tenant's, and another principal's and scope's of the same one."""
    places = [("b", "u1", None), ("b", "u2", None), ("a", "u2", None), ("a", "u1", "work")]
    for tenant, principal, scope in places:
        key = site.key(tenant, "admin", principal=principal, scope=scope)
        facts = [{"id": f"f{number}", "text": f"theirs {number}", "tags": ["t"]} for number in range(4)]
        facts.append({"id": "theirs", "text": f"theirs alone in {tenant}", "subject": "s"})
        facts.append({"id": "other", "text": "theirs too"})
        assert site.call("remember", {"facts": facts, "idempotencyKey": "k"}, key).status_code == 200
        site.call("putDocument", {"id": "theirs", "text": "their page", "idempotencyKey": "d"}, key)
        site.call("forget", {"scope": {"kind": "ids", "ids": ["f1"]}, "block": True}, key)
        site.call("forget", {"scope": {"kind": "ids", "ids": ["f2"]}, "soft": True}, key)
        site.call("recordUse", {"ids": ["f3"], "contextId": "c", "idempotencyKey": "u"}, key)
        node = {"id": "theirs", "kind": "semantic", "content": "told to them", "status": "active"}
        made = site.call("applyChanges", change("theirs", "e", operation="create", draft=node), key)
        assert made.status_code == 200
        assert site.call("rememberConversation", conversation("theirs", "told there"), key).status_code == 200


@pytest.fixture
def shared(site: Site) -> Site:
    """A server where others have memories too."""
    populate(site)
    return site


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Site]:
    """A server where nobody has any."""
    with Site(tmp_path / "alone", tenants=("a", "b")) as served:
        yield served


def lines(content: bytes) -> bytes:
    return KEYED.sub(b"", content)


def test_all_that_a_person_is_told_is_the_same_byte_for_byte_whether_or_not_there_are_others(shared, alone):
    seen = []
    for site in (shared, alone):
        key = site.key("a", "admin", principal="u1", scope="")
        replies = []
        for id_ in ("theirs", "f3", "f1"):  # of others; and one that was blocked there
            replies += [(op, site.call(op, asked, key)) for op, asked in requests(id_).items()]
            replies.append(("GET", site.send("GET", f"/api/v1/documents/{id_}", key)))
        mine = {"text": "mine", "id": "f1", "idempotencyKey": "k"}
        replies.append(("mine", site.call("remember", mine, key)))
        replies.append(("again", site.call("remember", mine, key)))
        replies.append(("theirs", site.call("remember", {"text": "theirs 1", "id": "f2"}, key)))
        mine = {"text": "my page", "id": "theirs", "idempotencyKey": "d"}
        replies.append(("page", site.call("putDocument", mine, key)))
        replies += [(f"{op} of mine", site.call(op, asked, key)) for op, asked in requests("f1").items()]
        seen.append([(op, reply.status_code, lines(reply.content)) for op, reply in replies])
    for with_others, without in zip(*seen, strict=True):
        assert with_others == without


def test_a_cursor_of_others_is_refused_like_one_that_nobody_gave(shared):
    mine = shared.key("a", principal="u1", scope="")
    for number in range(3):
        shared.call("remember", {"id": f"m{number}", "text": f"mine {number}"}, mine)
        shared.call("putDocument", {"id": f"m{number}", "text": f"mine {number}"}, mine)
    theirs = (
        shared.key("a", principal="u2"),
        shared.key("b", principal="u1"),
        shared.key("a", principal="u1", scope="work"),
    )
    for op in CURSORS:
        name = "since" if op == "changes" else "cursor"
        own = shared.call(op, {"limit": 1}, mine).json()["cursor"]
        assert shared.call(op, {"limit": 1, name: own}, mine).status_code == 200
        # Not the last character: some of its bits stand for nothing.
        forged = own[:-3] + ("A" if own[-3] != "A" else "B") + own[-2:]
        refused = {told(shared.call(op, {"limit": 1, name: forged}, mine))}
        for key in theirs:
            shared.call("putDocument", {"id": "z", "text": "second page"}, key)
            cursor = shared.call(op, {"limit": 1}, key).json()["cursor"]
            refused.add(told(shared.call(op, {"limit": 1, name: cursor}, mine)))
        assert len(refused) == 1
        assert refused.pop()[0] == 422


@pytest.mark.parametrize("header", ["perdure-tenant", "perdure-principal", "perdure-scope"])
def test_a_header_that_names_more_than_the_key_is_refused_alike_for_what_exists_and_what_does_not(
    shared, header
):
    key = shared.key("a", "admin", principal="u1", scope="home")
    there = {"perdure-tenant": "b", "perdure-principal": "u2", "perdure-scope": "work"}[header]
    own = {"perdure-tenant": "a", "perdure-principal": "u1", "perdure-scope": "home"}[header]
    for op, request in requests().items():
        replies = {
            told(shared.call(op, request, key, **{header: name}))
            for name in (there, "nobody", "", own.upper())
        }
        if header == "perdure-tenant":  # an empty name is no tenant's
            replies = {one for one in replies if one[0] != 400}
        assert [(one[0], json.loads(one[2])["error"]["code"]) for one in replies] == [(403, "forbidden")]


def test_a_header_that_repeats_what_the_key_fixes_changes_nothing(shared):
    key = shared.key("a", principal="u2")
    plain = told(shared.call("list", {}, key))
    assert b"theirs alone" in plain[2]
    assert (
        told(shared.call("list", {}, key, perdure_tenant="a", perdure_principal="u2", perdure_scope=""))
        == plain
    )
    assert told(shared.call("list", {}, key, perdure_principal="%752")) == plain


def test_fields_that_name_other_spaces_are_refused_alike_for_what_exists_and_what_does_not(shared):
    fixed, scoped = (
        shared.key("a", "admin", principal="u1"),
        shared.key("a", "admin", principal="u1", scope=""),
    )
    for principal in ("u2", "nobody"):
        spaces = [{"principal": principal}]
        asked = [
            ("recall", {"query": "theirs", "spaces": spaces}),
            ("recall", {"query": "theirs", "spaces": ["", *spaces]}),
            ("export", {"spaces": spaces}),
            ("export", {"spaces": [{"principal": "u1"}, *spaces]}),
            ("erase", {"principal": principal}),
            ("erase", {"principal": principal, "dryRun": True}),
        ]
        for op, request in asked:
            assert code(shared.call(op, request, fixed)) == "forbidden", (op, request)
    for scope in ("work", "nothing"):
        for op, request in [
            ("recall", {"query": "theirs", "spaces": [scope]}),
            ("recall", {"query": "theirs", "spaces": [{"principal": "u1", "scope": scope}]}),
            ("export", {"spaces": [{"principal": "u1", "scope": scope}]}),
            ("erase", {"principal": "u1", "scope": scope}),
            ("erase", {"principal": "u1"}),
        ]:
            assert code(shared.call(op, request, scoped)) == "forbidden", (op, request)


def test_fields_of_requests_name_no_tenant_principal_or_scope_beside_the_headers(shared):
    key = shared.key("a", "admin", principal="u1")
    for op, request in requests().items():
        for name in ("tenant", "principal", "scope", "namespace", "space", "user_id", "userId"):
            if name in request or (op, name) in {("erase", "scope"), ("import", "tenant")}:
                continue
            reply = shared.call(op, {**request, name: "u2"}, key)
            if op != "import":  # whose body is lines
                assert reply.status_code in (403, 422), (op, name)
            assert b"theirs" not in reply.content
    for query in ("principal=u2", "scope=work", "tenant=b", "spaces=u2", "user_id=u2"):
        for op in ("list", "spaces", "stats"):
            group = "memory" if op == "list" else "store"
            reply = shared.send(
                "POST",
                f"/api/v1/{group}/{op}?{query}",
                key,
                headers={"content-type": "application/json"},
                content=b"{}",
            )
            assert reply.status_code == 422


def test_lists_of_the_store_tell_a_fixed_key_of_its_own_alone(shared):
    key = shared.key("a", "admin", principal="u2")
    mine = [{"principal": "u2", "scope": ""}, {"principal": "u2", "scope": "#conversation"}]
    assert shared.call("spaces", {}, key).json() == {"spaces": mine}
    assert shared.call("stats", {}, key).json()["spaces"] == 2
    exported = shared.call("export", {}, key).content
    assert b"u1" not in exported
    assert b'"u2"' in exported
    assert b"work" not in exported
    for op in ("verify", "purge", "import", "storeEvents"):
        assert shared.call(op, {}, key).status_code == 403


def test_a_tenant_s_key_reaches_no_other_tenant_by_any_operation(shared):
    key = shared.key("a", "admin")
    for op, request in requests("theirs").items():
        reply = shared.call(op, request, key, perdure_principal="nobody")
        assert b"alone in b" not in reply.content
        assert shared.call(op, request, key, perdure_tenant="b", perdure_principal="u1").status_code == 403
    assert (
        shared.call("get", {"id": "theirs"}, shared.key("b", principal="u1")).json()["fact"]["text"]
        == "theirs alone in b"
    )


def medians(
    first: Callable[[], object], second: Callable[[], object], times: int = 60
) -> tuple[float, float]:
    """Return the median seconds of each, asked in turns so that both meet the same noise."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for ask, seconds in zip((first, second), taken, strict=True):
            began = time.perf_counter()
            ask()
            seconds.append(time.perf_counter() - began)
    return statistics.median(taken[0]), statistics.median(taken[1])


@pytest.mark.parametrize("op", ["get", "getDocument", "explain", "recall"])
def test_what_belongs_to_others_takes_as_long_as_what_nobody_has(shared, op):
    key = shared.key("a", "admin", principal="u1", scope="")
    asked = [requests(id_)[op] for id_ in ("theirs", "nobody")]
    if op == "recall":
        asked = [{"query": word} for word in ("theirs", "nobody")]
    foreign, absent = medians(lambda: shared.call(op, asked[0], key), lambda: shared.call(op, asked[1], key))
    assert max(foreign, absent) < 2 * min(foreign, absent) + 0.002


def test_a_wrong_key_takes_as_long_whether_or_not_there_is_one_of_its_id(site):
    for _ in range(50):
        site.key("a")
    known = site.key("a").rpartition("_")[0] + "_" + "0" * 64
    unknown = "pk_" + "0" * 16 + "_" + "0" * 64
    there, absent = medians(
        lambda: site.call("get", {"id": "f"}, known), lambda: site.call("get", {"id": "f"}, unknown)
    )
    assert max(there, absent) < 2 * min(there, absent) + 0.002
