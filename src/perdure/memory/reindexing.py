"""Changing how a space's texts are analysed, weighed and embedded; embedding what has no vector yet."""

from __future__ import annotations

from itertools import islice
from typing import Any

from perdure.base.text import counted
from perdure.embedders.protocol import Embedder, Vectors, checked_vectors
from perdure.errors import InvalidRequest, PerdureError, Unavailable
from perdure.log.protocol import Progress
from perdure.memory.config import MemoryConfig
from perdure.model.replies import Embedded, Reindexed
from perdure.planning.vectors import add_vector, find_other_model, refuse_other_model
from perdure.space.draft import Draft, confirm
from perdure.space.facts import FactReader
from perdure.space.preparing import units_of
from perdure.space.reindexing import reindex
from perdure.space.space import Space
from perdure.space.state import TOLD, SpaceState

BATCH = 256  # texts that are embedded and stored together

Unit = tuple[int, int, str]  # number, unit, text


def reindex_space(
    space: Space,
    told: dict[str, Any],
    progress: Progress | None,
    *,
    embedder: Embedder | None,
    embeddings: bool,
) -> Reindexed:
    """Give the space those of the settings profile, k1 and b that are not None; embed it anew if asked for.

    Raises:
        InvalidRequest: a setting is wrong, or nothing is asked for, or there is no embedder.
        Unavailable: the embedder failed. Nothing was changed if it did so on the first text; once the rewriting is
            done, what could not be embedded has no vector, and `embed_missing` goes on.
    """
    checked = {
        name: MemoryConfig.PARAMETERS[name].checked(value, field=name)
        for name, value in told.items()
        if value is not None
    }
    if not checked and not embeddings:
        raise InvalidRequest(
            "reindex changes something: name a profile, k1 or b, or embeddings=True", field="profile"
        )
    if embeddings:
        needed = _needed(embedder)
        _try(space, needed)
    done = reindex(space, checked, progress, drop_vectors=embeddings)
    embedded = embed_missing(space, embedder, None, progress).embedded if embeddings else 0
    return Reindexed(*done.settings, changed=done.changed, pending=done.pending, embedded=embedded)


def embed_missing(
    space: Space, embedder: Embedder | None, limit: int | None, progress: Progress | None
) -> Embedded:
    """Embed the live units that have no vector, in order of arrival, in transactions of 256.

    Raises:
        InvalidRequest: there is no embedder, or the space's vectors are another model's.
        Unavailable: the embedder failed; `__cause__` has its own error. What was embedded before is stored.
    """
    wanted = _needed(embedder)
    space.read(lambda state, _: _refuse_others(state, wanted))
    done = without = 0
    after = -1
    total = space.read(lambda state, _: state.without_vector)
    while limit is None or done < limit:
        size = BATCH if limit is None else min(BATCH, limit - done)
        units = space.read(lambda state, reader: _missing(state, reader, after, size))  # noqa: B023 - at once
        if not units:
            break
        after = units[-1][0] + units[-1][1]
        found = _embedded(wanted, [text for _, _, text in units])
        vectors = [row.astype("<f4").tobytes() if row.any() else b"" for row in found]
        done += space.write(lambda draft: _plan(draft, units, vectors, wanted.model))  # noqa: B023 - at once
        without += vectors.count(b"")
        if progress is not None:
            progress(min(done + without, total), total)
    if not done:  # others may have embedded them
        space.write(confirm)
    return Embedded(done, space.read(lambda state, _: state.without_vector))


def _try(space: Space, embedder: Embedder) -> None:
    """Raise what embedding the whole space would raise at once, by embedding its first text, and change nothing."""
    space.read(lambda state, _: _refuse_told(state, embedder))
    first = space.read(lambda state, reader: _units(state, reader, _first_row(state)))
    if first:
        _embedded(embedder, [text for _, _, text in first])


def _embedded(embedder: Embedder, texts: list[str]) -> Vectors:
    try:
        found = embedder.embed_documents(texts)
    except PerdureError:
        raise
    except Exception as error:  # an embedder of anybody's may raise anything
        raise Unavailable(
            f"the embedder {embedder.model!r} failed with {type(error).__name__}: mend it, and ask again",
            field="embedder",
        ) from error
    return checked_vectors(found, count=len(texts), dimension=embedder.dimension, model=embedder.model)


def _refuse_told(state: SpaceState, embedder: Embedder) -> None:
    """Raise InvalidRequest where vectors that callers gave, which stay, have another length than the embedder's."""
    if TOLD in state.vector_models and state.dimension != embedder.dimension:
        raise InvalidRequest(
            f"embedder gives {counted(embedder.dimension, 'number')}, but the embeddings that were given to this memory, which stay, "
            f"have {state.dimension}: use an embedder of that dimension, or forget the facts that have them",
            field="embedder",
        )


def _refuse_others(state: SpaceState, embedder: Embedder) -> None:
    _refuse_told(state, embedder)
    others = sorted(set(state.vector_models) - {TOLD, embedder.model})
    refuse_other_model(others[0] if others else None, embedder.model)


def _needed(embedder: Embedder | None) -> Embedder:
    if embedder is None:
        raise InvalidRequest(
            "there is no embedder to embed with: set embedder in the configuration", field="embedder"
        )
    return embedder


def _missing(state: SpaceState, reader: FactReader, after: int, size: int) -> list[Unit]:
    rows: list[int] = []
    for row in range(after + 1, state.next_number):
        if state.presence[row] and not state.vector_seqs[row]:
            rows.append(row)
            if len(rows) == size:
                break
    return _units(state, reader, rows)


def _first_row(state: SpaceState) -> list[int]:
    return [*islice((row for row in range(state.next_number) if state.presence[row]), 1)]


def _units(state: SpaceState, reader: FactReader, rows: list[int]) -> list[Unit]:
    owners = [state.unit_owner.get(row, row) for row in rows]
    records = reader.get_many(state, owners)
    return [
        (number, row - number, units_of(record)[row - number])
        for row, number, record in zip(rows, owners, records, strict=True)
    ]


def _plan(draft: Draft, units: list[Unit], vectors: list[bytes], model: str) -> int:
    """Plan the vectors of those that are still there without one; return how many."""
    refuse_other_model(find_other_model(draft, model), model)
    added = 0
    for (number, unit, text), vector in zip(units, vectors, strict=True):
        # Meanwhile it may have been forgotten, or a purge may have given its number to another.
        if not vector or not draft.exists(number) or draft.vector(number, unit) is not None:
            continue
        held = units_of(draft.fact(number))
        if unit < len(held) and held[unit] == text:
            add_vector(draft, number, unit, vector, model)
            added += 1
    return added
