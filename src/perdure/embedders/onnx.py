"""The onnx embedder: a sentence model from files on this machine, run by onnxruntime (extra `embed`)."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from perdure.embedders.protocol import (
    DIMENSION_MAX,
    QUERY_TASKS,
    QueryTask,
    Vectors,
    checked_texts,
    checked_vectors,
)
from perdure.embedders.settings import Absent, Switch, Text
from perdure.errors import Unavailable
from perdure.policies.parameters import OneOf, Parameter, Whole, set_checked

POOLINGS = ("mean", "cls")
_READ_BYTES = 1 << 20
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True, kw_only=True)
class OnnxEmbedder:
    """Runs `model.onnx` on the tokens that `tokenizer.json` makes of a text. No network.

    Args:
        folder: where `model.onnx` and `tokenizer.json` are. Files that hold tensors of the model apart
            (`model.onnx_data`) belong beside them.
        pooling: how token vectors become one: `mean` over the text's tokens, or `cls`, the first one. A model
            that gives one vector per text already is not pooled.
        normalise: whether vectors are brought to unit length.
        max_tokens: tokens of a text that are read, 2 to 65,536; the rest is left out. Not more than the
            model was made for.
        query_prefix, document_prefix: what the model wants before a text, such as `query: `.
        query_task: `fact` or `conversation`, where the query's prefix is an instruction for one of them.
        batch_size: texts that are run together, 1 to 1,024.
        threads: processor cores to use, 1 to 256.

    Files are read at the first use of the model, its name or its dimension, once. Blank texts are not run: their
    rows are zeros. A text's vector may differ in its last bits from batch to batch and from machine to machine.

    Raises:
        InvalidRequest: a parameter is wrong.
        Unavailable: (at first use) a package or a file is missing, or the model cannot be used.
    """

    folder: str
    pooling: Literal["mean", "cls"] = "mean"
    normalise: bool = True
    max_tokens: int = 256
    query_prefix: str = ""
    document_prefix: str = ""
    query_task: QueryTask | None = None
    batch_size: int = 32
    threads: int = 1
    _loaded: list[_Model] = field(default_factory=list, init=False, repr=False, compare=False)
    _loading: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {
        "folder": Text(),
        "pooling": OneOf(POOLINGS),
        "normalise": Switch(),
        "max_tokens": Whole(2, 65_536),
        "query_prefix": Text(0),
        "document_prefix": Text(0),
        "query_task": Absent(OneOf(QUERY_TASKS)),
        "batch_size": Whole(1, 1_024),
        "threads": Whole(1, 256),
    }

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)

    @property
    def model(self) -> str:
        """`onnx:` and a digest of the files and of the parameters that decide vectors; not of the folder's name."""
        return self._model().fingerprint

    @property
    def dimension(self) -> int:
        return self._model().dimension

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, in order."""
        return self._embedded(checked_texts(texts), self.document_prefix)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query."""
        row: Vectors = self._embedded(checked_texts([text]), self.query_prefix)[0]
        return row

    def _embedded(self, texts: list[str], prefix: str) -> Vectors:
        model = self._model()
        vectors = np.zeros((len(texts), model.dimension), np.float32)
        told = [row for row, text in enumerate(texts) if text.strip()]
        # Texts of like length together: the rest of a batch is filled up to its longest.
        told.sort(key=lambda row: len(texts[row]))
        for start in range(0, len(told), self.batch_size):
            rows = told[start : start + self.batch_size]
            vectors[rows] = self._pooled(model, [prefix + texts[row] for row in rows])
        return vectors

    def _pooled(self, model: _Model, texts: list[str]) -> Vectors:
        ids, mask = model.tokens(texts)
        found: NDArray[np.floating[Any]] = model.run(ids, mask)
        if found.ndim == 3:
            shares = mask[:, :, None].astype(np.float32)
            found = found[:, 0] if self.pooling == "cls" else (found * shares).sum(1) / shares.sum(1)
        if self.normalise:
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
            found = found / np.where(lengths == 0, 1, lengths)
        return checked_vectors(found, count=len(texts), dimension=model.dimension, model=model.fingerprint)

    def _model(self) -> _Model:
        with self._loading:
            if not self._loaded:
                self._loaded.append(self._load())
            return self._loaded[0]

    def _load(self) -> _Model:
        runtime, tokenizers = _packages()
        folder = Path(self.folder)
        files = [folder / "model.onnx", folder / "tokenizer.json", *sorted(folder.glob("model.onnx?*"))]
        fingerprint = f"onnx:{_digest(files, self._decisive())}"
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors only; they are raised as well
        try:
            session = runtime.InferenceSession(
                str(files[0]), sess_options=options, providers=["CPUExecutionProvider"]
            )
            tokenizer = tokenizers.Tokenizer.from_file(str(files[1]))
        except Exception as error:  # both packages raise plain exceptions of their own
            raise Unavailable(
                f"the model in {self.folder} cannot be loaded ({type(error).__name__}); it must be an ONNX model "
                "and a tokenizer.json of the tokenizers package",
                field="folder",
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.max_tokens)
        return _Model(session, tokenizer, fingerprint, _shape(session, self.folder))

    def _decisive(self) -> str:
        return json.dumps(
            [self.pooling, self.normalise, self.max_tokens, self.query_prefix, self.document_prefix]
        )


@dataclass(frozen=True, slots=True)
class _Output:
    name: str
    dimension: int


@dataclass(frozen=True, slots=True)
class _Model:
    session: Any
    tokenizer: Any
    fingerprint: str
    output: _Output

    @property
    def dimension(self) -> int:
        return self.output.dimension

    def tokens(self, texts: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return numbers and mask, each of shape (texts, longest), filled up with zeros."""
        rows = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        ids = np.zeros((len(rows), max(1, *map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        for row, numbers in enumerate(rows):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        # A text of no token at all still needs one to take the mean of.
        mask[:, 0] = 1
        return ids, mask

    def run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the model's output: (texts, dimension), or (texts, tokens, dimension) to be pooled."""
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {told.name for told in self.session.get_inputs()}
        try:
            (found,) = self.session.run(
                [self.output.name], {name: values for name, values in feeds.items() if name in wanted}
            )
        except Exception as error:  # onnxruntime raises plain exceptions of its own
            raise Unavailable(
                f"the model failed ({type(error).__name__}); check max_tokens against what it was made for",
                field="embedder",
            ) from error
        output: NDArray[np.float32] = np.asarray(found, np.float32)
        return output


def _packages() -> tuple[Any, Any]:
    try:
        return import_module("onnxruntime"), import_module("tokenizers")
    except ImportError as error:
        raise Unavailable(
            "the onnx embedder needs the packages onnxruntime and tokenizers; install perdure[embed]",
            field="embedder",
        ) from error


def _digest(files: Sequence[Path], decisive: str) -> str:
    digest = hashlib.blake2b(decisive.encode(), digest_size=8)
    for path in files:
        try:
            with path.open("rb") as stream:
                own = hashlib.blake2b()
                while chunk := stream.read(_READ_BYTES):
                    own.update(chunk)
        except OSError as error:
            raise Unavailable(
                f"{path} cannot be read ({error.strerror}); the folder of an onnx embedder must hold model.onnx "
                "and tokenizer.json",
                field="folder",
            ) from error
        digest.update(own.digest())
    return digest.hexdigest()


def _shape(session: Any, folder: str) -> _Output:
    """Return the output to read: one vector per text where the model has it, else its first, to be pooled."""
    inputs = [told.name for told in session.get_inputs()]
    outputs = {told.name: told.shape for told in session.get_outputs()}
    name = "sentence_embedding" if "sentence_embedding" in outputs else next(iter(outputs))
    shape = outputs[name]
    unknown = [told for told in inputs if told not in _INPUTS]
    if unknown or "input_ids" not in inputs or len(shape) not in (2, 3) or not _is_dimension(shape[-1]):
        raise Unavailable(
            f"the model in {folder} is no sentence model: it must take {', '.join(_INPUTS)}, or some of them, and "
            f"give vectors of a fixed dimension, 1 to {DIMENSION_MAX}, per text or per token",
            field="folder",
        )
    return _Output(name, shape[-1])


def _is_dimension(size: object) -> bool:
    return isinstance(size, int) and 1 <= size <= DIMENSION_MAX
