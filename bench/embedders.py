"""Time the embedders: milliseconds for a query of 12 words, and for a text of 24 words in batches of 32.

Run: python -m bench.embedders [--onnx FOLDER]

Texts are made up, of words from the static table's vocabulary by frequency. FOLDER holds `model.onnx` and
`tokenizer.json`. Medians of calls, after one call that loads what is loaded once.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator

from perdure.embedders import Embedder, HashingEmbedder, OnnxEmbedder, StaticEmbedder
from perdure.embedders.static import TABLE

QUERY_WORDS, TEXT_WORDS, BATCH = 12, 24, 32
QUERIES, BATCHES = 300, 10


def sentences(count: int, length: int) -> list[str]:
    """Return sentences of words from the vocabulary, word n about as frequent as 1/n."""
    pieces = (TABLE / "pieces.txt").read_text(encoding="utf-8").split("\n")
    words = [piece for piece in pieces if piece.isascii() and piece.isalpha() and len(piece) > 1]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    draw = random.Random(1)
    return [" ".join(draw.choices(words, weights, k=length)).capitalize() + "." for _ in range(count)]


def median_ms(calls: Iterator[Callable[[], object]]) -> float:
    times = []
    for call in calls:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1_000 * statistics.median(times)


def report(name: str, embedder: Embedder) -> str:
    start = time.perf_counter()
    embedder.embed_query("word")
    load = 1_000 * (time.perf_counter() - start)
    query = median_ms(
        (lambda text=text: embedder.embed_query(text)) for text in sentences(QUERIES, QUERY_WORDS)
    )
    texts = sentences(BATCHES * BATCH, TEXT_WORDS)
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    batch = median_ms((lambda batch=batch: embedder.embed_documents(batch)) for batch in batches)
    return f"| {name} | {embedder.dimension} | {load:.0f} | {query:.3f} | {batch / BATCH:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the embedders.")
    parser.add_argument("--onnx", metavar="FOLDER", help="a folder with model.onnx and tokenizer.json")
    told = parser.parse_args()
    print(
        "| embedder | dimension | first use, ms | a query, ms | a text in a batch, ms |\n|---|---|---|---|---|"
    )
    print(report("static", StaticEmbedder()))
    print(report("hashing", HashingEmbedder()))
    if told.onnx:
        print(report("onnx, 1 thread", OnnxEmbedder(folder=told.onnx)))


if __name__ == "__main__":
    main()
