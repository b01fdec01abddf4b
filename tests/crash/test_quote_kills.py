"""A process that forgets a conversation is killed at each statement, while another quotes what it forgets: no quote outlives the words."""

from __future__ import annotations

import signal

import pytest

from governed import change, create_active, moment
from perdure import Store
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.node import Evidence
from perdure.repository_errors import QuoteNotFound
from postgres_server import fresh_address
from processes.running import Child

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills as POSIX systems do"),
]

FORGETTER = """
import os, signal, sys
from perdure import Store
from perdure.log.postgres.connections import Session
from perdure.memory import citing
address, keys, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
take, send, said = citing._take, Session.send, []
def taking(*told):
    found = take(*told)
    if not said:
        said.append("took")
        print("took", flush=True)
        sys.stdin.readline()
    return found
def sending(session, name, *params):
    if said:
        said.append(name)
        if len(said) == step + 1:
            os.kill(os.getpid(), signal.SIGKILL)
    return send(session, name, *params)
with Store.open(address, tenant="acme", keystore=keys) as store:
    conversation = store.conversation("alice", "work")
    citing._take, Session.send = taking, sending
    conversation.forget("monday")
    print(len(said), flush=True)
"""
WORDS = "4417-quartz"
STEPS_MAX = 200


def tell(store):
    turn = ConversationTurn(
        source_id="t1", role="user", text=f"my locker code is {WORDS}", observation_time=moment(0)
    )
    store.conversation("alice", "work").remember(
        ConversationInput(session_id="monday", version="1", turns=(turn,))
    )


def quote(store, name):
    proof = Evidence("perdure:turn/monday/1/t1", "digest", "manual", moment(0), WORDS, None)
    return store.repository("alice", "work").apply(
        change(f"key of {name}", create_active(name, evidence=[proof]))
    )


def quotes(store, names):
    nodes = [store.repository("alice", "work").get(name) for name in names]
    return [one.quote for node in nodes for one in node.evidence if one.quote is not None]


def test_wherever_a_forget_is_killed_the_words_are_there_or_no_quote_of_them_is(tmp_path):
    address, keys, names = fresh_address(), tmp_path / "keys", list[str]()
    went, stayed = 0, 0
    with Store.open(address, tenant="acme", keystore=keys, audit="off") as store:
        for step in range(1, STEPS_MAX):
            if store.conversation("alice", "work").get("monday", "1") is None:
                tell(store)
            with Child(FORGETTER, address, keys, step) as child:
                assert child.hear() == "took"
                names.append(f"n{step}")
                quote(store, names[-1])
                child.tell("go on")
                ended = child.finish(may_fail=True)
            if store.conversation("alice", "work").get("monday", "1") is None:
                went += 1
                assert quotes(store, names) == [], f"killed at step {step}"
                with pytest.raises(QuoteNotFound):
                    quote(store, "late")
            else:
                stayed += 1
            if ended:
                break
        assert ended.strip().isdigit(), ended
        assert went > 1, "some were killed after the words had gone"
        assert stayed > 1
        assert not store.conversation("alice", "work").forget("monday").pending
        assert quotes(store, names) == []
        assert store.verify().ok
