"""Clients that write to several servers at random, and keep what each was told: when it asked, and what came of it."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unit.server.running_server import Running

TENANTS, PRINCIPALS = ("acme", "beta", "gamma"), ("ann", "bob")
PATIENCE_S = 120
WORDS = ("tea", "coffee", "milk", "water", "juice", "cocoa")
K = 100  # as many as a recall gives over HTTP, and more than the facts that all writers keep in one memory
OWN_MAX = 12  # facts of one writer in one memory; with more it forgets rather than remembers
CERTAIN_PURGE = 10  # the act of each writer that is a purge, however short the run
MET = ("refused", "hung up")  # and asked again
ACTS = {"remember": 40.0, "supersede": 20.0, "forget": 20.0, "recall": 30.0, "purge": 0.4}

Place = tuple[str, str]  # a tenant and a principal: whose memory


class Wrong(AssertionError):
    """Something that a server must not answer."""


@dataclass(frozen=True)
class Write:
    """A remember or a forget that was acknowledged: it took effect between the two moments."""

    began: float
    ended: float
    id: str
    text: str | None  # None forgets
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recalled:
    """What a recall gave, best first: ids, scores and statuses, and the moments at which they were recorded."""

    place: Place
    query: str
    began: float
    ended: float
    hits: tuple[tuple[str, float, str], ...]
    recorded: tuple[int, ...]


class Writer:
    """One client of all servers; one that is to be killed leaves their list before.

    What it finds wrong at once is in `problems`; the rest is what can only be held against what others did.
    """

    def __init__(self, number: int, servers: Sequence[Running], ended: threading.Event) -> None:
        self.name, self.chance = f"w{number}", random.Random(number)
        self.servers, self.ended = servers, ended
        self.links: dict[Running, http.client.HTTPConnection] = {}
        self.replied: Running | None = None
        self.writes: dict[Place, list[Write]] = {}  # in their order: one is asked for after the other
        self.kept: dict[Place, dict[str, str]] = {}  # the texts of what is told and not forgotten, by id
        self.recalls: list[Recalled] = []
        self.purges = dict.fromkeys(TENANTS, 0)
        self.counts = dict.fromkeys((*ACTS, *MET), 0)
        self.problems: list[str] = []
        self.thread = threading.Thread(target=self._run)

    # Asking

    def ask(self, path: str, body: Any, place: Place, *, elsewhere: bool = False) -> Any:
        """Return the reply of a server, asking again, and others, as long as they are not available.

        Args:
            elsewhere: never that of the server that replied last.
        """
        deadline, but = time.monotonic() + PATIENCE_S, self.replied if elsewhere else None
        while True:
            server = self.chance.choice([one for one in self.servers if one is not but])
            try:
                status, told = self._post(server, path, body, place)
            except (OSError, http.client.HTTPException) as error:
                if server in self.servers:
                    raise Wrong(f"{path}: a server hung up: {type(error).__name__}") from error
                self.links.pop(server).close()
                self.counts["hung up"] += 1
                continue
            if status == 200:
                self.replied = server
                return told
            if status != 503 or told["error"]["code"] not in ("busy", "unavailable"):
                raise Wrong(f"{path}: {status} {told}")
            self.counts["refused"] += 1
            if time.monotonic() > deadline:
                raise Wrong(f"{path}: still {told}")
            time.sleep(0.02)

    def _post(self, server: Running, path: str, body: Any, place: Place) -> tuple[int, Any]:
        link = self.links.get(server)
        if link is None:
            link = self.links[server] = http.client.HTTPConnection(
                server.host, server.port, timeout=PATIENCE_S
            )
        tenant, principal = place
        headers = {
            "content-type": "application/json",
            "perdure-tenant": tenant,
            "perdure-principal": principal,
        }
        link.request("POST", f"/api/v1/{path}", json.dumps(body), headers)
        reply = link.getresponse()
        return reply.status, json.loads(reply.read())

    # Acting

    def _run(self) -> None:
        number = 0
        try:
            while not self.ended.is_set():
                self._step(number, (self.chance.choice(TENANTS), self.chance.choice(PRINCIPALS)))
                number += 1
        except Exception as error:  # noqa: BLE001 - told by the thread that waits for this one
            at = " < ".join(
                f"{one.name}:{one.lineno}" for one in reversed(traceback.extract_tb(error.__traceback__))
            )
            self.problems.append(f"{self.name} at {number}: {type(error).__name__}: {error} ({at})")
        finally:
            for link in self.links.values():
                link.close()

    def _step(self, number: int, place: Place) -> None:
        kept = self.kept.setdefault(place, {})
        [act] = self.chance.choices(list(ACTS), list(ACTS.values()))
        if number == CERTAIN_PURGE:
            act = "purge"
        elif act in ("remember", "supersede") and len(kept) >= OWN_MAX:
            act = "forget"
        elif act in ("supersede", "forget") and not kept:
            act = "remember"
        if act == "purge":
            self._purge(place)
        elif act == "recall":
            self.recalls.append(self._recall(place))
        elif act == "forget":
            self._forget(place, self.chance.choice(list(kept)))
        else:
            older = (self.chance.choice(list(kept)),) if act == "supersede" else ()
            self._remember(place, f"{self.name}-{number}", older)
        self.counts[act] += 1

    def _remember(self, place: Place, id_: str, older: tuple[str, ...]) -> None:
        drinks = " and ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 3)))
        text = f"{self.name} drinks {drinks}"
        began = time.monotonic()
        told = self.ask("memory/remember", {"id": id_, "text": text, "supersedes": list(older)}, place)
        self._note(place, Write(began, time.monotonic(), id_, text, older))
        self.kept[place][id_] = text
        if told["outcome"] not in ("created", "unchanged", "existing"):
            raise Wrong(f"{id_} was answered {told['outcome']}")
        fact = self.ask("memory/get", {"id": id_}, place, elsewhere=True)["fact"]
        if fact is None or fact["text"] != text:
            raise Wrong(f"{id_} was not read back")
        for other in older:
            fact = self.ask("memory/get", {"id": other}, place, elsewhere=True)["fact"]
            if fact["status"] != "superseded" or id_ not in fact["supersededBy"]:
                raise Wrong(f"{other} was superseded by {id_}, and is {fact['status']}")

    def _forget(self, place: Place, id_: str) -> None:
        began = time.monotonic()
        self.ask("memory/forget", {"scope": {"kind": "ids", "ids": [id_]}}, place)
        self._note(place, Write(began, time.monotonic(), id_, None))
        del self.kept[place][id_]
        if self.ask("memory/get", {"id": id_}, place, elsewhere=True)["fact"] is not None:
            raise Wrong(f"{id_} was read after it was forgotten")

    def _purge(self, place: Place) -> None:
        certificate = self.ask("store/purge", {}, place)["certificate"]
        if certificate["operation"] != "purge" or certificate["epoch"] < 1:
            raise Wrong(f"a purge was answered {certificate}")
        self.purges[place[0]] += 1

    def _recall(self, place: Place) -> Recalled:
        query = " ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 2)))
        began = time.monotonic()
        found = self.ask("memory/recall", {"query": query, "k": K}, place)["results"]
        hits = tuple((hit["fact"]["id"], hit["score"], hit["status"]) for hit in found)
        recorded = tuple(hit["fact"]["ingestTime"] for hit in found)
        return Recalled(place, query, began, time.monotonic(), hits, recorded)

    def _note(self, place: Place, write: Write) -> None:
        self.writes.setdefault(place, []).append(write)
