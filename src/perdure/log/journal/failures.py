"""The one place where the system's exceptions become Perdure's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from perdure.base.disk import FULL
from perdure.errors import PerdureError, StorageFull, Unavailable

_OURS = re.compile(r"journal(-\d+)?\.\w+(\.new)?")


def translated(error: OSError) -> PerdureError:
    """Return the Perdure error for one of the system; raise it `from` that one."""
    if error.errno in FULL:
        return StorageFull("the disk or quota is full: nothing was written; make room and try again")
    name = PurePath(str(error.filename)).name
    where = f"or {name} in it" if _OURS.fullmatch(name) else "or a file in it"
    return Unavailable(
        f"the journal's directory, {where}, cannot be used ({error.strerror}): check that this user may write "
        "there, and that nothing else lies in a file's place"
    )


@contextmanager
def system_errors() -> Iterator[None]:
    """Translate whatever the system raises within."""
    try:
        yield
    except OSError as error:
        raise translated(error) from error
