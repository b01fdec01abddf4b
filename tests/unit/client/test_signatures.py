"""The clients have the calls of memories, documents and stores: the same names, arguments and answers."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from perdure import Memory, Store
from perdure.client import (
    AsyncClient,
    AsyncClientConversation,
    AsyncClientDocuments,
    AsyncClientMemory,
    AsyncClientRepository,
    AsyncClientStore,
    Client,
    ClientConversation,
    ClientDocuments,
    ClientMemory,
    ClientRepository,
    ClientStore,
)
from perdure.conversation.conversation import ConversationMemory
from perdure.documents.documents import Documents
from perdure.repository.repository import Repository
from source_tree import ROOT

PAIRS = [
    (ClientMemory, Memory),
    (ClientDocuments, Documents),
    (ClientRepository, Repository),
    (ClientConversation, ConversationMemory),
    (ClientStore, Store),
]
TWINS = [
    (AsyncClient, Client),
    (AsyncClientMemory, ClientMemory),
    (AsyncClientDocuments, ClientDocuments),
    (AsyncClientRepository, ClientRepository),
    (AsyncClientConversation, ClientConversation),
    (AsyncClientStore, ClientStore),
]
# Not of the wire: what opens, closes and configures a store, what reads its files or counts in its process, and what only formats.
AT_HOME = {
    Memory: {"open", "close", "config", "as_prompt"},
    Documents: {"index"},
    Repository: set(),
    ConversationMemory: set(),
    Store: {
        "open",
        "close",
        "config",
        "save_config",
        "delete_tenant",
        "memory",
        "memory_of",
        "documents",
        "repository",
        "conversation",
        "session",
        "health",
        "counters",
        "rekey",
        "backup",
        "check_certificate",
        # To prove the audit of a whole store, and to trim it, is for who runs it.
        *("events_head", "verify_events", "export_events", "trim_events", "note_event"),
    },
}
# Arguments that no request can carry: a callback, and which spaces of a file or of a store are meant.
UNTOLD = {"progress"}
UNTOLD_BY = {("import_", "spaces"), ("stats", "spaces")}


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def calls(pairs):
    return [
        pytest.param(kind, other, name, id=f"{kind.__name__}.{name}")
        for kind, other in pairs
        for name in sorted(public(kind))
        if inspect.isfunction(getattr(kind, name))
    ]


@pytest.mark.parametrize(("client", "kind"), PAIRS)
def test_a_client_has_every_call_that_goes_through_the_wire_and_no_other(client, kind):
    assert public(client) == public(kind) - AT_HOME[kind]


@pytest.mark.parametrize(("client", "kind", "name"), calls(PAIRS))
def test_a_call_of_a_client_takes_the_same_arguments_and_gives_the_same(client, kind, name):
    told, wanted = inspect.signature(getattr(client, name)), inspect.signature(getattr(kind, name))
    parameters = [
        parameter
        for parameter in wanted.parameters.values()
        if parameter.name not in UNTOLD and (name, parameter.name) not in UNTOLD_BY
    ]
    assert list(told.parameters.values()) == parameters
    assert told.return_annotation == wanted.return_annotation


@pytest.mark.parametrize(("twin", "kind"), TWINS)
def test_both_clients_have_the_same_names(twin, kind):
    assert public(twin) == public(kind)


@pytest.mark.parametrize(("twin", "kind", "name"), calls(TWINS))
def test_both_clients_take_the_same_arguments(twin, kind, name):
    told, other = inspect.signature(getattr(twin, name)), inspect.signature(getattr(kind, name))
    assert list(told.parameters) == list(other.parameters)
    defaults = [parameter.default for parameter in told.parameters.values()]
    assert defaults == [parameter.default for parameter in other.parameters.values()]
    assert inspect.getdoc(getattr(twin, name))


def test_the_synchronous_client_is_what_the_script_makes_of_the_other():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "unasync.py", "--check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_without_httpx_the_error_names_the_extra():
    program = (
        "import sys\n"
        "sys.modules['httpx'] = None  # as where it is not installed\n"
        "try:\n"
        "    import perdure.client\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'perdure[client]'" in done.stdout


def test_a_client_loads_nothing_of_the_engine():
    program = "import sys, perdure.client\nprint(*(m for m in sys.modules if m.startswith('perdure.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    parts = {name.split(".")[1] for name in done.stdout.split()}
    assert parts == {"base", "client", "contract", "errors", "model", "repository_errors"}
