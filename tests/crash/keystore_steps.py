"""A process that dies at the n-th call of a keystore that changes a file; of a write it does one half first."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any
from uuid import UUID

from crash.children import Tell
from perdure.keystore import FileKeystore

ADA, BEN = UUID(int=1), UUID(int=2)
SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))
MADE = 4
CALLS = ("open", "write", "fsync", "ftruncate", "truncate", "unlink", "mkdir")
OPERATIONS = {
    "put_secret": lambda keystore: keystore.put_secret(BEN, SECRET),
    "new_keys": lambda keystore: keystore.new_keys(ADA, 3),
    "destroy": lambda keystore: keystore.destroy(ADA, [2, 3]),
    "destroy_below": lambda keystore: keystore.destroy_below(ADA, MADE),
    "drop_tenant": lambda keystore: keystore.drop_tenant(ADA),
}


def fill(directory: Path) -> dict[int, bytes]:
    """Make a keystore with a tenant, and return its keys."""
    keystore = FileKeystore(directory)
    keystore.put_secret(ADA, SECRET)
    return dict(keystore.new_keys(ADA, MADE))


def run(tell: Tell, directory: str, operation: str, step: int) -> None:
    """Run the operation and die at the call, counted from 1; with 0 live, and tell how many there were."""
    keystore, count = FileKeystore(Path(directory)), 0

    def counted(name: str) -> Any:
        real = getattr(os, name)

        def call(*told: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                if name == "write":
                    real(told[0], told[1][: len(told[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*told, **options)

        return call

    for name in CALLS:
        setattr(os, name, counted(name))
    OPERATIONS[operation](keystore)
    tell("calls", count)
