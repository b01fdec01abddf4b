"""Run by the tests of full disks in a process of its own: `main` with a job and a directory as arguments.

The limit on the size of files stands for a full disk: writes past it fail as they do on one, with EFBIG.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from perdure import Memory, PerdureError, Store
from perdure.log.protocol import Batch, Cached, Rewritten


def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def outcome(call):
    """Return what the call came to: "ok" or the code of the error. Any other exception ends the process."""
    try:
        call()
    except PerdureError as error:
        return error.code
    return "ok"


def use(directory, size):
    """Every kind of call under a limit, on a store that was open before it."""
    with Store.open(directory) as store:
        memory = store.memory()
        memory.recall("kettle")
        limit(int(size))
        told = {
            "recall": outcome(lambda: memory.recall("kettle")),
            "list": outcome(memory.list),
            "remember": outcome(lambda: memory.remember_many([f"{n} " + "teapot " * 4000 for n in range(4)])),
            "forget": outcome(lambda: memory.forget(ids=["kettle"])),
            "recall again": outcome(lambda: memory.recall("kettle")),
            "health": store.health().status,
            "size": outcome(store.stats),
        }
        limit(resource.RLIM_INFINITY)
        told["after"] = outcome(lambda: memory.remember("cup"))
        told["done"] = store.log.scrub()
    return told


def pending(directory):
    """Reads and writes while what an erasure left cannot be cleaned."""
    with Store.open(directory) as store:
        log = store.log
        head = log.head(1)
        with log.writer():
            log.append(1, head, Batch(records=[b"removal " * 4000], erase=[head.seq]))
            limit(4096)
            told = {
                "head": outcome(lambda: log.head(1)),
                "read": outcome(lambda: list(log.read(1, 0, 99))),
                "get": outcome(lambda: log.get(1, [1], log.head(1))),
                "spaces": outcome(log.spaces),
                "find": outcome(lambda: log.find(1, [b"k" * 16])),
                "cache": outcome(lambda: log.get_cache(1, "state")),
                "scrub": log.scrub(),
                "pending": log.scrub_pending(),
            }
            limit(resource.RLIM_INFINITY)
            told["later"] = [log.scrub(), log.scrub_pending()]
    return told


def rewrite(directory, size):
    """Purge and back up on a disk that is full, then when there is room; a cache is written as well."""
    with Store.open(directory) as store:
        log, copy = store.log, directory.parent / "copy"
        store.memory().recall("kettle")
        names = sorted(path.name for path in directory.iterdir())
        limit(int(size))
        told = {
            "purge": outcome(lambda: log.purge(keep_all)),
            "epoch": log.epoch(),
            "backup": outcome(lambda: log.backup(copy)),
            "copied": copy.exists(),
            "note": outcome(lambda: log.note_backup(1)),
            "cache": outcome(lambda: log.put_cache(1, "state", Cached(log.head(1), b"derived " * 20_000))),
            "cached": log.get_cache(1, "state") is not None,
            "recall": outcome(lambda: store.memory().recall("kettle")),
            "reclaimable": outcome(log.reclaimable_bytes),
        }
        limit(resource.RLIM_INFINITY)
        told["scrub"] = log.scrub()
        extra = ("cache-", "backup.lock", "audit")  # made when they are needed
        lasting = (path for path in directory.iterdir() if not path.name.startswith(extra))
        told["files"] = sorted(path.name for path in lasting) == names
        told["later"] = outcome(lambda: log.backup(copy))
        told["purged"] = outcome(lambda: log.purge(keep_all))
        told["noted"] = log.backups()
    return told


def transfer(directory, size):
    """Export and import on a disk that is full, then when there is room; erase and purge by the store's calls."""
    export = directory.parent / "export.jsonl"
    with Store.open(directory) as store, Store.open(directory.parent / "other") as other:
        store.export(directory.parent / "whole.jsonl")
        store.memory("ada").remember("The lamp is lit", id="lamp")
        limit(int(size))
        told = {
            "export": outcome(lambda: store.export(export)),
            "purge": outcome(store.purge),
            "backup": outcome(lambda: store.backup(directory.parent / "copy")),
            "import": outcome(lambda: other.import_(directory.parent / "whole.jsonl")),
            "imported": len(other.memory().list().items),
        }
        told["left"] = sorted(path.name for path in directory.parent.iterdir())
        limit(resource.RLIM_INFINITY)
        told["later"] = [
            outcome(lambda: store.export(export)),
            outcome(lambda: other.import_(export)),
            outcome(store.purge),
            outcome(lambda: store.backup(directory.parent / "copy")),
            outcome(lambda: store.erase("ada")),
        ]
        told["whole"] = [fact.id for fact in other.memory("ada").list().items]
    return told


def audited(directory, size, level):
    """All that needs an event, or reads, where the audit has no room to begin; then what erases, with room."""
    with Store.open(directory, audit=level) as store:
        memory = store.memory()
        limit(int(size))
        said = [message(lambda: memory.forget(ids=["kettle"])), message(store.purge)]
        told = {
            "recall": len(memory.recall("kettle")),
            "stats": outcome(store.stats),
            "verify": [finding.message for finding in store.verify().findings],
            "events": outcome(store.events),
            "verify events": len(store.verify_events()),
            "export": len(list(store.export_lines())) > 0,
        }
        limit(resource.RLIM_INFINITY)
        told["forgotten"] = memory.forget(ids=["kettle"]).forgotten
        told["purge"] = outcome(store.purge)
        told["later"] = sorted({event.type for event in store.events().items})
    return {"said": said, "told": told}


def message(call):
    try:
        call()
    except PerdureError as error:
        return error.message
    return "ok"


def keep_all(space, read):
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def create(directory, size):
    limit(int(size))
    told = {"open": outcome(lambda: Memory.open(directory).close())}
    limit(resource.RLIM_INFINITY)
    told["after"] = outcome(lambda: Memory.open(directory).remember("cup"))
    return told


def main():
    jobs = {job.__name__: job for job in (use, pending, rewrite, transfer, create, audited)}
    print(json.dumps(jobs[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))  # noqa: T201
