"""Late interaction: how alike two texts are, word piece by word piece.

MaxSim (Khattab and Zaharia, ColBERT, 2020): a text is as many vectors as it has word pieces; for each piece of the
question the greatest cosine with any piece of the text is taken, and the mean of these is the likeness. The top
candidates of a recall are ordered by half their own score and half that likeness, each scaled to 0..1 over the
candidates. bench/rerank.py measures whether that pays.

The model is all-MiniLM-L6-v2 (`model.safetensors` and `tokenizer.json` in one folder), computed in NumPy; needs the
package `tokenizers`. Set OPENBLAS_NUM_THREADS=1 where other work runs: two threads on busy cores are many times
slower.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

TOP = 50  # 100 measures the same
WEIGHT = 0.5  # of the likeness; 0.4 to 0.6 measure the same
TOKENS_MAX = 256  # what the model was made for; what stands beyond is not seen
LAYERS, HEADS, WIDTH = 6, 12, 384
BATCH = 32
_STEP = 64  # texts per call, so that a long run can be followed


class TokenVectors(NamedTuple):
    """A way to give each word piece of a text a vector of length 1: (texts) -> one array (pieces, width) a text."""

    name: str
    encode: Callable[[Sequence[str]], list[Floats]]


class MiniLM:
    """all-MiniLM-L6-v2 from its files, in NumPy: vectors of texts, and of word pieces in or out of context."""

    def __init__(self, folder: Path) -> None:
        tokenizer: Any = import_module("tokenizers").Tokenizer  # only this class needs the package
        self._weights = read_safetensors(folder / "model.safetensors")
        self._tokenizer = tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS_MAX)

    model, dimension, query_task = "all-MiniLM-L6-v2, NumPy float32", WIDTH, None

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        """Return a text's vector: the mean over its pieces, of length 1."""
        means = np.array([pieces.mean(axis=0) for pieces in self._encode(texts, in_context=True)])
        return _unit(means.reshape(len(texts), WIDTH))

    def embed_query(self, text: str) -> Floats:
        found: Floats = self.embed_documents([text])[0]
        return found

    def in_context(self, texts: Sequence[str]) -> list[Floats]:
        return [_unit(pieces[1:-1]) for pieces in self._encode(texts, in_context=True)]

    def alone(self, texts: Sequence[str]) -> list[Floats]:
        return [_unit(pieces[1:-1]) for pieces in self._encode(texts, in_context=False)]

    def _encode(self, texts: Sequence[str], *, in_context: bool) -> list[Floats]:
        """Return the vectors of each text's pieces, the two marks around them included."""
        ids = [np.array(found.ids) for found in self._tokenizer.encode_batch(list(texts))]
        if not in_context:
            table = self._weights["embeddings.word_embeddings.weight"]
            return [table[one] for one in ids]
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        found: dict[int, Floats] = {}
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            lengths = [len(ids[index]) for index in some]
            padded = np.zeros((len(some), max(lengths)), dtype=np.int64)
            for row, index in enumerate(some):
                padded[row, : lengths[row]] = ids[index]
            vectors = self._forward(padded, np.arange(max(lengths)) < np.array(lengths)[:, None])
            found |= {
                index: vectors[row, :length]
                for row, (index, length) in enumerate(zip(some, lengths, strict=True))
            }
        return [found[index] for index in range(len(ids))]

    def _forward(self, ids: NDArray[np.int64], real: NDArray[np.bool_]) -> Floats:
        """Return BERT's last layer, shape (texts, pieces, width)."""
        told = "embeddings."
        x = self._weights[told + "word_embeddings.weight"][ids]
        x = x + self._weights[told + "position_embeddings.weight"][: ids.shape[1]]
        x = self._norm(x + self._weights[told + "token_type_embeddings.weight"][0], told + "LayerNorm")
        hidden = np.where(real, np.float32(0), np.float32(-1e9))[:, None, None, :]
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            attended = self._linear(
                self._attend(x, hidden, at + "attention.self."), at + "attention.output.dense"
            )
            x = self._norm(x + attended, at + "attention.output.LayerNorm")
            inner = _gelu(self._linear(x, at + "intermediate.dense"))
            x = self._norm(x + self._linear(inner, at + "output.dense"), at + "output.LayerNorm")
        return x

    def _attend(self, x: Floats, hidden: Floats, at: str) -> Floats:
        def split(name: str) -> Floats:
            found = self._linear(x, at + name)
            return found.reshape(*x.shape[:2], HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 1, 3, 2) * np.float32((WIDTH // HEADS) ** -0.5) + hidden
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares = shares / shares.sum(axis=-1, keepdims=True)
        found: Floats = (shares @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        return found

    def _linear(self, x: Floats, name: str) -> Floats:
        found: Floats = x @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]
        return found

    def _norm(self, x: Floats, name: str) -> Floats:
        x = x - x.mean(axis=-1, keepdims=True)
        scale = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        found: Floats = x / scale * self._weights[name + ".weight"] + self._weights[name + ".bias"]
        return found


def read_safetensors(path: Path) -> dict[str, Floats]:
    """Return the float32 tensors of a file by name: 8 bytes of length, a JSON header, then the numbers."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header: dict[str, Any] = json.loads(data[8 : 8 + length])
    found = {}
    for name, told in header.items():
        if told.get("dtype") == "F32":
            start, end = told["data_offsets"]
            raw = data[8 + length + start : 8 + length + end]
            found[name] = np.frombuffer(raw, dtype="<f4").reshape(told["shape"])
    return found


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True).astype(np.float32)
    found: Floats = rows / np.maximum(lengths, np.float32(1e-12))  # zeros stay zeros
    return found


def _gelu(x: Floats) -> Floats:
    """Return x * Phi(x), with erf as in Abramowitz and Stegun 7.1.26 (off by less than 2e-7)."""
    z = np.abs(x) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(factor)) * t
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    found: Floats = x * np.float32(0.5) * (1 + erf)
    return found


class Reranker:
    """Orders the best candidates of a recall again. Vectors of texts met before are kept, as half floats."""

    def __init__(self, vectors: TokenVectors, *, top: int = TOP, weight: float = WEIGHT) -> None:
        self.vectors, self.top, self.weight = vectors, top, weight
        self._kept: dict[str, NDArray[np.float16]] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """Work out the vectors of texts that will be candidates."""
        missing = [text for text in dict.fromkeys(texts) if self._key(text) not in self._kept]
        for start in range(0, len(missing), _STEP):
            some = missing[start : start + _STEP]
            for text, found in zip(some, self.vectors.encode(some), strict=True):
                self._kept[self._key(text)] = found.astype(np.float16)

    def order(self, query: str, candidates: Sequence[tuple[str, str, float]]) -> list[str]:
        """Return the candidates' ids, best first; beyond the top they keep their order.

        Args:
            candidates: (id, text, score), best first.
        """
        head, tail = candidates[: self.top], candidates[self.top :]
        if len(head) < 2:
            return [id_ for id_, _, _ in candidates]
        self.learn(text for _, text, _ in head)
        pieces = [self._kept[self._key(text)].astype(np.float32) for _, text, _ in head]
        likeness = max_similarities(self.vectors.encode([query])[0], pieces)
        own = np.array([score for _, _, score in head])
        mixed = (1 - self.weight) * scaled(own) + self.weight * scaled(likeness)
        order = np.argsort(-mixed, kind="stable")
        return [head[int(index)][0] for index in order] + [id_ for id_, _, _ in tail]

    def share(self, other: Reranker) -> None:
        """Keep vectors in one place with a reranker that has the same ones."""
        self._kept = other._kept

    def save(self, path: Path) -> None:
        np.savez(path, allow_pickle=False, **self._kept)

    def load(self, path: Path) -> None:
        if path.exists():
            with np.load(path) as kept:
                self._kept |= {name: kept[name] for name in kept.files}

    def bytes_per_text(self) -> float:
        return sum(found.nbytes for found in self._kept.values()) / max(1, len(self._kept))

    @staticmethod
    def _key(text: str) -> str:
        return blake2b(text.encode(), digest_size=16).hexdigest()


def max_similarities(query: Floats, texts: Sequence[Floats]) -> NDArray[np.float64]:
    """Return for each text the mean, over the pieces of the query, of the greatest cosine with a piece of the text.

    A text or query without pieces is like nothing: 0.
    """
    found = np.zeros(len(texts))
    filled = [index for index, text in enumerate(texts) if len(text)]
    if filled and len(query):
        starts = np.cumsum([0, *(len(texts[index]) for index in filled)])[:-1]
        cosines = query @ np.concatenate([texts[index] for index in filled]).T
        found[filled] = np.maximum.reduceat(cosines, starts, axis=1).mean(axis=0)
    return found


def scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values from 0 (least) to 1 (greatest); all 1 where they are equal."""
    low, high = values.min(), values.max()
    return np.ones_like(values) if low == high else (values - low) / (high - low)
