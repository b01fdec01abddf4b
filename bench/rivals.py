"""What users would pick instead for plain text search in process: SQLite FTS5, tantivy, bm25s.

Each takes the texts, then answers a query with the ids (row numbers) of its ten best matches. A package
that is not installed is left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

Search = Callable[[str], list[int]]


def fts5(texts: Sequence[str], folder: Path) -> Search:
    """SQLite's own full-text index over a table of texts, ranked by its bm25()."""
    db = apsw.Connection(str(folder / "fts5.db"))
    db.execute("PRAGMA journal_mode=WAL").fetchall()
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT)")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(text, content='t', content_rowid='id')")
    with db:
        db.executemany("INSERT INTO t VALUES(?, ?)", enumerate(texts))
        db.executemany("INSERT INTO f(rowid, text) VALUES(?, ?)", enumerate(texts))
    sql = "SELECT rowid FROM f WHERE f MATCH ? ORDER BY rank LIMIT 10"

    def search(query: str) -> list[int]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        return [row[0] for row in db.execute(sql, (words,))]

    return search


def tantivy(texts: Sequence[str], folder: Path) -> Search:
    """tantivy in memory, its default tokenizer, query parsed for every search."""
    import tantivy as library  # noqa: PLC0415 - optional

    schema = library.SchemaBuilder()
    schema.add_text_field("text", stored=False)
    schema.add_integer_field("id", stored=True, indexed=False)
    index = library.Index(schema.build())
    writer = index.writer(128_000_000, 1)
    for number, text in enumerate(texts):
        writer.add_document(library.Document(text=text, id=number))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> list[int]:
        parsed = index.parse_query(query, ["text"])
        hits = searcher.search(parsed, 10).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return search


def bm25s(texts: Sequence[str], folder: Path) -> Search:
    """bm25s with its NumPy backend: a static index, rebuilt for every new fact."""
    import bm25s as library  # noqa: PLC0415 - optional

    split = [re.findall(r"\w+", text) for text in texts]
    index = library.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(split, show_progress=False)
    known = index.vocab_dict

    def search(query: str) -> list[int]:
        words = [word for word in re.findall(r"\w+", query) if word in known]
        if not words:
            return []
        found, _ = index.retrieve([words], k=min(10, len(texts)), show_progress=False)
        return [int(one) for one in found[0]]

    return search


RIVALS: dict[str, tuple[Callable[[Sequence[str], Path], Search], int]] = {
    # name: (builder, the most rows it is run on within the time of one benchmark)
    "SQLite FTS5": (fts5, 1_000_000),
    "tantivy": (tantivy, 1_000_000),
    "bm25s": (bm25s, 100_000),
}
