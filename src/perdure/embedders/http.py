"""The http embedder: any endpoint that speaks OpenAI's `/embeddings`, such as Ollama's or vLLM's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from perdure.base.text import counted
from perdure.embedders.endpoints import check_endpoint, read_key
from perdure.embedders.failures import unavailable
from perdure.embedders.protocol import (
    DIMENSION_MAX,
    QUERY_TASKS,
    QueryTask,
    Vectors,
    checked_texts,
    checked_vectors,
)
from perdure.embedders.settings import Absent, Text
from perdure.policies.parameters import OneOf, Parameter, Whole, set_checked

# A float64 takes at most 24 characters in JSON; the rest is for spaces, and for what surrounds the vectors.
_NUMBER_BYTES = 48
_ROW_BYTES = 1_024
_ANSWER_BYTES = 65_536


@dataclass(frozen=True, kw_only=True)
class HttpEmbedder:
    """Asks an endpoint for vectors. Nothing is sent before the first text; texts leave this machine then.

    Args:
        url: the endpoint's base, to which `/embeddings` is added: `http://localhost:11434/v1`. Redirects are
            not followed and proxies of the environment not used; https certificates are verified.
        model_name: the model, as the endpoint calls it.
        dimension: how many numbers its vectors have, 1 to 4,096.
        key_env: name of the environment variable that holds the key; read at each request.
        key_file: path of a file that holds the key instead; read at each request.
        query_prefix, document_prefix: what the model wants before a text, such as `query: `.
        query_task: `fact` or `conversation`, where the query's prefix is an instruction for one of them.
        batch_size: texts in one request, 1 to 2,048.
        timeout_ms: time for connecting, and again from there to the last byte of the answer.
        retries: how often a request is sent again after 408, 429, 5xx or a broken connection, 0 to 10.
        backoff_ms: the wait before the first retry; each further one doubles it. A Retry-After counts instead.
        backoff_max_ms: the longest wait. An endpoint that asks for more is Unavailable at once.

    Blank texts are not sent: their rows are zeros. The fingerprint is made of the model's name, the dimension
    and the prefixes: an endpoint that moves keeps its vectors.

    Raises:
        InvalidRequest: a parameter is wrong.
        Unavailable: (by the embedding methods) the key cannot be read, the endpoint cannot be reached, refuses,
            or answers with something else than the vectors asked for. No message shows the key, a text,
            or anything of the answer.
    """

    url: str
    model_name: str
    dimension: int
    key_env: str | None = None
    key_file: str | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    query_task: QueryTask | None = None
    batch_size: int = 64
    timeout_ms: int = 30_000
    retries: int = 3
    backoff_ms: int = 500
    backoff_max_ms: int = 30_000

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {
        "url": Text(),
        "model_name": Text(),
        "dimension": Whole(1, DIMENSION_MAX),
        "key_env": Absent(Text()),
        "key_file": Absent(Text()),
        "query_prefix": Text(0),
        "document_prefix": Text(0),
        "query_task": Absent(OneOf(QUERY_TASKS)),
        "batch_size": Whole(1, 2_048),
        "timeout_ms": Whole(1, 600_000),
        "retries": Whole(0, 10),
        "backoff_ms": Whole(1, 600_000),
        "backoff_max_ms": Whole(1, 600_000),
    }

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)
        check_endpoint(self.url, self.key_env, self.key_file)

    @property
    def model(self) -> str:
        decisive = [self.model_name, self.dimension, self.query_prefix, self.document_prefix]
        digest = hashlib.blake2b(json.dumps(decisive).encode(), digest_size=8).hexdigest()
        return f"http-{self.model_name}:{digest}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, in order. Requests follow one another; one that fails loses the batch."""
        return self._embedded(checked_texts(texts), self.document_prefix)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query."""
        row: Vectors = self._embedded(checked_texts([text]), self.query_prefix)[0]
        return row

    def _embedded(self, texts: list[str], prefix: str) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        told = [row for row, text in enumerate(texts) if text.strip()]
        for start in range(0, len(told), self.batch_size):
            rows = told[start : start + self.batch_size]
            vectors[rows] = self._asked([prefix + texts[row] for row in rows])
        return vectors

    def _asked(self, texts: list[str]) -> Vectors:
        # What speaks HTTP takes long to import; only those who ask for it should wait for it.
        from perdure.embedders.transport import Endpoint  # noqa: PLC0415

        body = json.dumps({"model": self.model_name, "input": texts}).encode()
        bytes_max = _ANSWER_BYTES + len(texts) * (_ROW_BYTES + _NUMBER_BYTES * self.dimension)
        answer = Endpoint(
            url=f"{self.url.rstrip('/')}/embeddings",
            timeout_ms=self.timeout_ms,
            retries=self.retries,
            backoff_ms=self.backoff_ms,
            backoff_max_ms=self.backoff_max_ms,
        ).post(body, key=read_key(self.key_env, self.key_file), bytes_max=bytes_max)
        rows = _rows(answer, len(texts))
        return checked_vectors(rows, count=len(texts), dimension=self.dimension, model=self.model)


def _rows(answer: bytes, count: int) -> list[Any]:
    """Return the vectors of an answer in the order of the texts, or raise Unavailable."""
    try:
        items = json.loads(answer)["data"]
        order = [item.get("index", place) for place, item in enumerate(items)]
        rows = [item["embedding"] for item in items]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise unavailable("answered with something else than embeddings as JSON; check url") from error
    if [type(place) for place in order] != [int] * count or sorted(order) != list(range(count)):
        raise unavailable(
            f"answered with {counted(len(order), 'vector')}, or wrong indices, for {counted(count, 'text')}"
        )
    return [rows[order.index(place)] for place in range(count)]
