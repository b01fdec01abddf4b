"""The cached embedder: remembers the vectors of the texts that were embedded last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from perdure.base.ids import keyed_hash, random_secret
from perdure.embedders.protocol import Embedder, QueryTask, Vectors, checked_texts, checked_vectors
from perdure.policies.parameters import Whole

SIZE = Whole(1, 1_000_000)
_DOCUMENT, _QUERY = b"embedded text", b"embedded query"


class CachedEmbedder:
    """Another embedder's vectors, kept for the texts that were used last.

    Args:
        embedder: the embedder to ask for what is not kept.
        size: vectors kept, 1 to 1,000,000; the one unused for longest goes first. Each takes
            4 * dimension bytes and about 200 more.

    Texts are kept as digests under a key that this object alone has; the vectors themselves are kept as they
    are until they are pushed out or `clear` is called, also those of facts that were forgotten since. Queries
    and documents are kept apart. Two threads that miss the same text at once both ask for it.
    """

    def __init__(self, embedder: Embedder, size: int = 10_000) -> None:
        self._embedder = embedder
        self._size = SIZE.checked(size, field="size")
        # Under a key, so that a dump of the cache cannot be searched for the digests of known texts.
        self._key = random_secret()
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def query_task(self) -> QueryTask | None:
        return self._embedder.query_task

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; each distinct text that is not kept is asked for once, in one batch."""
        told = checked_texts(texts)
        keys = [self._digest(_DOCUMENT, text) for text in told]
        found = self._find(keys)
        missing = {key: text for key, text in zip(keys, told, strict=True) if key not in found}
        if missing:
            rows = self._checked(self._embedder.embed_documents(list(missing.values())), len(missing))
            found.update(self._keep(dict(zip(missing, rows, strict=True))))
        vectors = np.zeros((len(told), self.dimension), np.float32)
        for row, key in enumerate(keys):
            vectors[row] = found[key]
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the query's vector; a copy, so that changing it changes nothing here."""
        key = self._digest(_QUERY, *checked_texts([text]))
        found = self._find([key])
        if not found:
            found = self._keep({key: self._checked([self._embedder.embed_query(text)], 1)[0]})
        return found[key].copy()

    def clear(self) -> None:
        """Drop every vector that is kept."""
        with self._lock:
            self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"CachedEmbedder({self._embedder!r}, size={self._size})"

    def _digest(self, domain: bytes, text: str) -> bytes:
        return keyed_hash(self._key, domain, text.encode("utf-8", "surrogatepass"))

    def _checked(self, rows: object, count: int) -> Vectors:
        return checked_vectors(rows, count=count, dimension=self.dimension, model=self.model)

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        found = {}
        with self._lock:
            for key in keys:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found[key] = self._kept[key]
        return found

    def _keep(self, vectors: dict[bytes, Vectors]) -> dict[bytes, Vectors]:
        """Keep vectors as the ones used last, push out the oldest, and return what was given, copied."""
        # A row of a batch would keep the whole batch in memory.
        own = {key: vector.copy() for key, vector in vectors.items()}
        with self._lock:
            self._kept.update(own)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return own
