"""MemoryConfig: every setting of a memory as plain data, and its strict JSON form."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar, Literal, TypeVar, cast

from perdure.base.canonical import canonical_json
from perdure.base.text import counted
from perdure.contract import limits as contract_limits
from perdure.embedders.choices import EMBEDDERS
from perdure.embedders.onnx import OnnxEmbedder
from perdure.embedders.protocol import Embedder
from perdure.embedders.settings import Absent
from perdure.errors import InvalidRequest
from perdure.lexical.bm25 import K1_MAX
from perdure.lexical.languages import DEFAULT_PROFILE, PROFILES
from perdure.model.node import EvidenceKind
from perdure.policies.admission import AdmissionPolicy
from perdure.policies.choices import (
    ADMISSION,
    CONSOLIDATION,
    FORGETTING,
    RANKING,
    RECENCY,
    SUPERSESSION,
    Choice,
    camel_case,
    json_path,
    refuse_unknown,
)
from perdure.policies.consolidation import ConsolidationPolicy
from perdure.policies.extraction import EntityExtractor
from perdure.policies.forgetting import ForgettingPolicy
from perdure.policies.observers import MemoryObserver
from perdure.policies.parameters import Flag, OneOf, Parameter, Real, SomeOf, Whole, set_checked
from perdure.policies.recency import RecencyPolicy
from perdure.policies.relevance import RankingPolicy
from perdure.policies.supersession import SupersessionPolicy

T = TypeVar("T")
History = Literal["current", "all", "historical"]
HISTORIES: tuple[History, ...] = ("current", "all", "historical")
Dedup = Literal["none", "merge-exact"]
OnIdConflict = Literal["reject", "replace"]
RECEIPT_DAYS_MAX = 36_500
DECISION_KINDS = ("verification", "manual")  # in the order of all kinds
DIMENSION = Whole(1, contract_limits.DIMENSION_MAX)


def _with_names_checked(kind: type[T]) -> type[T]:
    """Make the class refuse an unknown argument as its JSON form does. Checkers of types see the class as it is."""
    names = tuple(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]
    made = kind.__init__

    @wraps(made)
    def init(self: T, *positional: Any, **told: Any) -> None:
        refuse_unknown(told, names)
        made(self, *positional, **told)

    kind.__init__ = init  # type: ignore[assignment]
    return kind


@_with_names_checked
@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Budgets of one read, each at least 1; a read that would exceed one fails with QueryLimit.

    Args:
        work: units of work, one for each posting, row or link that is visited.
        frontier: links in one supersession component.
        bytes: memory for eligible ids.
    """

    work: int = contract_limits.WORK_DEFAULT
    frontier: int = contract_limits.FRONTIER_DEFAULT
    bytes: int = contract_limits.BYTES_DEFAULT

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {
        "work": Whole(1),
        "frontier": Whole(1),
        "bytes": Whole(1),
    }

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)


@_with_names_checked
@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryConfig:
    """The settings of a memory. Every default changes nothing; a wrong value raises InvalidRequest.

    A policy is given by name or as an object: a built-in of `perdure.policies`, or any object with
    the methods of its protocol. The two spellings of a built-in without parameters are equal; the
    `*_policy` properties give the object in either case.

    Args:
        default_k: results of a recall that names no k, 1 to 1,000.
        default_history: `current`, `all` or `historical` (whatever is not current).
        supersession: `explicit`, `latest-by-subject`, or a SupersessionPolicy.
        recency: `none`, or a RecencyPolicy such as ExponentialRecency.
        historical_weight: 0 or more; multiplies facts that are not current when a recall includes them.
        forgetting: `keep-all`, or a ForgettingPolicy such as ExpiredFor.
        consolidation: `none`, or a ConsolidationPolicy.
        admission: `none`, `standard`, or an AdmissionPolicy: which texts are taken in.
        dedup: `none`, or `merge-exact`: a fact without id, subject and validity whose text is that of a current
            one but for case and white space is merged into it, from 24 characters on.
        on_id_conflict: `reject`, or `replace`, which discards the old text.
        ranking: `score`, `relevance`, or a RankingPolicy such as Relevance.
        profile: how text is analysed: `english.v1`, `unicode.v1` (no stems, no stop words), or `snowball:` and
            a language. Fixed for a space when it is made, as are k1 and b, until `Memory.reindex`.
        k1: 0 to 1,000; how soon more occurrences of a word stop counting.
        b: 0 to 1; how much a long text is held against it.
        limits: budgets of one read.
        receipt_days: how long an idempotency key is remembered, 1 to 36,500 days.
        trace_limit: how many rejections a trace lists, 0 to 100,000.
        embedder: `none`, `static`, `hashing`, or an Embedder such as OnnxEmbedder or HttpEmbedder of
            `perdure.embedders`, or of one's own: where the vectors come from that no caller gives.
        embedding_dimension: numbers in a vector, 1 to 4,096, for a memory whose callers give them; None leaves it
            to the first. An embedder of another dimension is refused; to know it, an onnx model is read.
        governed: whether the space takes in what its repository admits alone: then `remember`, `correct` and putting a
            document are refused.
        decision_kinds: the kinds of evidence that let a node of the repository become active, and end being so.
        extractor: finds entities in a text; only code can give it.
        observers: objects to be told of durable writes; only code can give them.
    """

    default_k: int = 10
    default_history: History = "current"
    supersession: SupersessionPolicy | str = "explicit"
    recency: RecencyPolicy | str = "none"
    historical_weight: float = 1.0
    forgetting: ForgettingPolicy | str = "keep-all"
    consolidation: ConsolidationPolicy | str = "none"
    admission: AdmissionPolicy | str = "none"
    dedup: Dedup = "none"
    on_id_conflict: OnIdConflict = "reject"
    ranking: RankingPolicy | str = "score"
    profile: str = DEFAULT_PROFILE
    k1: float = 0.9
    b: float = 0.4
    limits: Limits = Limits()
    receipt_days: int = contract_limits.RECEIPT_DAYS
    trace_limit: int = contract_limits.TRACE_LIMIT
    embedder: Embedder | str = "none"
    embedding_dimension: int | None = None
    governed: bool = False
    decision_kinds: tuple[str, ...] = DECISION_KINDS
    extractor: EntityExtractor | None = None
    observers: tuple[MemoryObserver, ...] = ()

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {
        "default_k": Whole(1, contract_limits.K_MAX),
        "default_history": OneOf(HISTORIES),
        "historical_weight": Real(0.0),
        "dedup": OneOf(("none", "merge-exact")),
        "on_id_conflict": OneOf(("reject", "replace")),
        "profile": OneOf(PROFILES),
        "k1": Real(0.0, K1_MAX),
        "b": Real(0.0, 1.0),
        "receipt_days": Whole(1, RECEIPT_DAYS_MAX),
        "embedding_dimension": Absent(DIMENSION),
        "trace_limit": Whole(0, contract_limits.TRACE_LIMIT_MAX),
        "governed": Flag(),
        "decision_kinds": SomeOf(tuple(kind.value for kind in EvidenceKind)),
    }
    CHOICES: ClassVar[Mapping[str, Choice[Any]]] = {
        "supersession": SUPERSESSION,
        "recency": RECENCY,
        "forgetting": FORGETTING,
        "consolidation": CONSOLIDATION,
        "admission": ADMISSION,
        "ranking": RANKING,
        "embedder": EMBEDDERS,
    }

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)
        for name, choice in self.CHOICES.items():
            object.__setattr__(self, name, choice.checked(getattr(self, name), field=name))
        _check_embedder(self.embedder_object, self.embedding_dimension)
        if not isinstance(self.limits, Limits):
            raise InvalidRequest(f"limits must be a Limits, got {type(self.limits).__name__}", field="limits")
        if self.extractor is not None and not callable(self.extractor):
            raise InvalidRequest(
                f"extractor must be a callable from text to entities, got {type(self.extractor).__name__}",
                field="extractor",
            )
        object.__setattr__(self, "observers", _checked_observers(self.observers))

    @property
    def supersession_policy(self) -> SupersessionPolicy:
        return SUPERSESSION.resolved(self.supersession)

    @property
    def recency_policy(self) -> RecencyPolicy:
        return RECENCY.resolved(self.recency)

    @property
    def forgetting_policy(self) -> ForgettingPolicy:
        return FORGETTING.resolved(self.forgetting)

    @property
    def consolidation_policy(self) -> ConsolidationPolicy:
        return CONSOLIDATION.resolved(self.consolidation)

    @property
    def admission_policy(self) -> AdmissionPolicy:
        return ADMISSION.resolved(self.admission)

    @property
    def ranking_policy(self) -> RankingPolicy:
        return RANKING.resolved(self.ranking)

    @property
    def embedder_object(self) -> Embedder | None:
        """The embedder; None where there is none."""
        return EMBEDDERS.found(self.embedder)

    def replace(self, **changes: Any) -> MemoryConfig:
        """Return a copy with other values for the named settings, checked as in the constructor."""
        refuse_unknown(changes, tuple(field.name for field in dataclasses.fields(self)))
        return dataclasses.replace(self, **changes)

    @classmethod
    def from_json(cls, data: bytes | str | Mapping[str, Any]) -> MemoryConfig:
        """Return the configuration that JSON text, or an object decoded from it, describes.

        Field names are those of the constructor in camelCase. Absent and null fields have their
        defaults; an unknown or repeated field, a wrong type (true is not 1) and a value out of range
        raise InvalidRequest naming the field by its path.
        """
        values = {}
        for key, value in _checked_object(_decoded(data), tuple(_READERS), field="").items():
            name, read = _READERS[key]
            values[name] = read(value, key)
        return cls(**values)

    def to_json(self) -> bytes:
        """Return every setting but those that are None as canonical JSON; `from_json` gives an equal configuration back.

        Raises:
            InvalidRequest: a policy, embedder, extractor or observer of one's own, which JSON cannot hold.
        """
        if self.extractor is not None:
            raise InvalidRequest(
                "extractor cannot be written as JSON; only code can give it", field="extractor"
            )
        if self.observers:
            raise InvalidRequest(
                "observers cannot be written as JSON; only code can give them", field="observers"
            )
        plain: dict[str, Any] = {
            camel_case(name): value for name in self.PARAMETERS if (value := getattr(self, name)) is not None
        }
        for name, choice in self.CHOICES.items():
            plain[camel_case(name)] = choice.to_plain(getattr(self, name), field=name)
        plain["limits"] = {name: getattr(self.limits, name) for name in Limits.PARAMETERS}
        return canonical_json(plain)


class _Repeated(dict[str, Any]):
    """A decoded object that held one of its keys twice."""

    key: str


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    repeated = None
    for key, value in pairs:
        if key in found:
            repeated = key
        found[key] = value
    if repeated is None:
        return found
    marked = _Repeated(found)
    marked.key = repeated
    return marked


def _decoded(data: bytes | str | Mapping[str, Any]) -> Any:
    if isinstance(data, Mapping):
        return data
    if not isinstance(data, bytes | str):
        raise InvalidRequest(f"the configuration must be JSON text or an object, got {type(data).__name__}")
    try:
        # Tokens such as NaN become floats here and are refused under their field's name.
        return json.loads(data, object_pairs_hook=_pairs)
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"the configuration is not valid JSON at line {error.lineno}, column {error.colno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            "the configuration is not valid JSON: its bytes are no Unicode text, a number has thousands of "
            "digits, or it is nested too deeply"
        ) from error


def _checked_object(value: Any, known: tuple[str, ...], *, field: str) -> dict[str, Any]:
    """Return an object's fields without the null ones, once it has no unknown and no repeated key."""
    if not isinstance(value, Mapping):
        where = field or "the configuration"
        raise InvalidRequest(f"{where} must be an object, got {type(value).__name__}", field=field or None)
    _refuse_repeated(value, field)
    refuse_unknown(value, known, field=field)
    return {key: item for key, item in value.items() if item is not None}


def _refuse_repeated(value: Any, field: str) -> None:
    if isinstance(value, _Repeated):
        path = json_path(field, value.key)
        raise InvalidRequest(f"{path} is given more than once; keep one of them", field=path)


def _read_limits(value: Any, field: str) -> Limits:
    told = _checked_object(value, tuple(Limits.PARAMETERS), field=field)
    return Limits(
        **{key: Limits.PARAMETERS[key].checked(item, field=f"{field}.{key}") for key, item in told.items()}
    )


def _choice_reader(choice: Choice[Any]) -> Callable[[Any, str], Any]:
    def read(value: Any, field: str) -> Any:
        _refuse_repeated(value, field)
        return choice.from_plain(value, field=field)

    return read


def _parameter_reader(parameter: Parameter) -> Callable[[Any, str], Any]:
    return lambda value, field: parameter.checked(value, field=field)


_READERS: Mapping[str, tuple[str, Callable[[Any, str], Any]]] = {
    camel_case(name): (name, read)
    for name, read in (
        *((name, _parameter_reader(parameter)) for name, parameter in MemoryConfig.PARAMETERS.items()),
        *((name, _choice_reader(choice)) for name, choice in MemoryConfig.CHOICES.items()),
        ("limits", _read_limits),
    )
}


def _check_embedder(embedder: Embedder | None, dimension: int | None) -> None:
    """Raise InvalidRequest where a memory cannot keep what an embedder makes."""
    # An onnx embedder's files are not read for nothing: whoever only looks at a configuration may not have them.
    if embedder is None or (isinstance(embedder, OnnxEmbedder) and dimension is None):
        return
    made = DIMENSION.checked(embedder.dimension, field="embedder.dimension")
    if dimension not in (None, made):
        raise InvalidRequest(
            f"embedding_dimension is {dimension}, but the embedder makes vectors of {counted(made, 'dimension')}; leave "
            "embedding_dimension out, or choose another embedder",
            field="embedding_dimension",
        )
    size = len(embedder.model.encode())
    if size > contract_limits.MODEL_BYTES_MAX:
        raise InvalidRequest(
            f"embedder.model takes {size} bytes, more than the {contract_limits.MODEL_BYTES_MAX} that a store keeps "
            "of it; give it a shorter name",
            field="embedder.model",
        )


def _checked_observers(value: Any) -> tuple[MemoryObserver, ...]:
    if not isinstance(value, tuple | list):
        raise InvalidRequest(f"observers must be a tuple, got {type(value).__name__}", field="observers")
    for index, observer in enumerate(value):
        if not (
            callable(getattr(observer, "remembered", None)) and callable(getattr(observer, "forgotten", None))
        ):
            raise InvalidRequest(
                f"observers[{index}] must have the methods remembered and forgotten, "
                f"got {type(observer).__name__}",
                field="observers",
            )
    return cast("tuple[MemoryObserver, ...]", tuple(value))
