"""Choices: built-in policies by name, their JSON form, and any object of the protocol beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Generic, TypeVar

from perdure.errors import InvalidRequest
from perdure.policies.admission import AdmissionPolicy, AdmitAll, StandardAdmission
from perdure.policies.consolidation import ConsolidationPolicy, NoConsolidation
from perdure.policies.duplicates import CollapseDuplicates
from perdure.policies.forgetting import ExpiredFor, ForgettingPolicy, KeepAll, MaxFacts, SupersededFor
from perdure.policies.parameters import OneOf, Parameter, listed
from perdure.policies.pruning import Prune
from perdure.policies.recency import BASES, ExponentialRecency, NoRecency, RecencyPolicy
from perdure.policies.relevance import RankingPolicy, Relevance, ScoreOrder
from perdure.policies.supersession import ExplicitOnly, LatestBySubject, SupersessionPolicy

P = TypeVar("P")


class Choice(Generic[P]):
    """The values that one policy setting may have.

    A setting's normal form is a name where the policy is a built-in without parameters, otherwise
    the policy object; equal settings therefore compare equal however they were given.
    """

    def __init__(
        self,
        kinds: Mapping[str, type[Any]],
        *,
        methods: tuple[str, ...],
        attributes: Mapping[str, tuple[Any, ...]] | None = None,
    ) -> None:
        """Take the built-ins by name, and the methods and attribute values that any policy must have."""
        self._kinds = dict(kinds)
        self._names = {kind: name for name, kind in kinds.items()}
        self._methods = methods
        self._attributes = dict(attributes or {})

    def checked(self, value: Any, *, field: str) -> P | str:
        """Return the normal form of a name or policy object, or raise InvalidRequest naming `field`."""
        if isinstance(value, str):
            return self._normal(self._made(value, {}, field=field, camel=False))
        if isinstance(value, type):
            raise InvalidRequest(
                f"{field} must be a policy object, got the class {value.__name__}; call it to make one",
                field=field,
            )
        missing = [name for name in self._methods if not callable(getattr(value, name, None))]
        if missing:
            raise InvalidRequest(
                f"{field} must be one of {listed(tuple(self._kinds))} or an object with "
                f"{' and '.join(self._methods)}, got {type(value).__name__}",
                field=field,
            )
        for name, allowed in self._attributes.items():
            if getattr(value, name, None) not in allowed:
                raise InvalidRequest(
                    f"{field}.{name} must be one of {', '.join(map(repr, allowed))}", field=f"{field}.{name}"
                )
        return self._normal(value)

    def resolved(self, value: P | str) -> P:
        """Return the policy object of a normal form."""
        if isinstance(value, str):
            policy: P = self._kinds[value]()
            return policy
        return value

    def from_plain(self, value: Any, *, field: str) -> P | str:
        """Return the normal form of a JSON value: a name, or an object with `kind` and parameters."""
        if isinstance(value, str):
            return self._normal(self._made(value, {}, field=field, camel=True))
        if not isinstance(value, Mapping):
            raise InvalidRequest(
                f"{field} must be a name or an object with a kind, got {type(value).__name__}", field=field
            )
        kind = OneOf(tuple(self._kinds)).checked(value.get("kind"), field=f"{field}.kind")
        told = {key: item for key, item in value.items() if key != "kind"}
        return self._normal(self._made(kind, told, field=field, camel=True))

    def to_plain(self, value: P | str, *, field: str) -> Any:
        """Return the JSON value of a normal form; raises InvalidRequest for an object of one's own."""
        if isinstance(value, str):
            return value
        name = self._names.get(type(value))
        if name is None:
            raise InvalidRequest(
                f"{field} is a {type(value).__name__}, which only code can give; JSON knows "
                f"{listed(tuple(self._kinds))}",
                field=field,
            )
        return {"kind": name} | {camel_case(key): getattr(value, key) for key in _parameters(type(value))}

    def _normal(self, policy: Any) -> P | str:
        name = self._names.get(type(policy))
        if name is not None and not _parameters(type(policy)):
            return name
        normal: P = policy
        return normal

    def _made(self, name: str, told: Mapping[str, Any], *, field: str, camel: bool) -> Any:
        kind = self._kinds[OneOf(tuple(self._kinds)).checked(name, field=field)]
        spelled = {(camel_case(key) if camel else key): key for key in _parameters(kind)}
        refuse_unknown(told, tuple(spelled), field=field)
        values = {}
        for spelling, key in spelled.items():
            value = told.get(spelling)
            if value is not None:
                values[key] = _parameters(kind)[key].checked(value, field=f"{field}.{spelling}")
            elif _required(kind, key):
                form = f'{{"kind": "{name}", "{spelling}": …}}' if camel else f"{kind.__name__}({key}=…)"
                raise InvalidRequest(
                    f"{field} {name!r} needs {spelling}; give {form}", field=f"{field}.{spelling}"
                )
        try:
            return kind(**values)
        except InvalidRequest as error:
            # Each parameter was in range: what is left is a rule between several of them.
            raise InvalidRequest(f"{field}: {error.message}", field=field) from error


def camel_case(name: str) -> str:
    """Return a field's JSON name: half_life_ms becomes halfLifeMs."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def refuse_unknown(told: Mapping[Any, Any], known: tuple[str, ...], *, field: str = "") -> None:
    """Raise InvalidRequest naming the first key that is not among the known ones by its path."""
    for key in told:
        if key not in known:
            path = json_path(field, key)
            allowed = f"the fields are {', '.join(known)}" if known else "there are no parameters here"
            raise InvalidRequest(f"{path} is an unknown field; {allowed}", field=path)


def json_path(field: str, key: Any) -> str:
    """Return the path of a key below a field, escaped, and cut off where it is no name but a text."""
    name = ascii(key)[1:-1][:64] if isinstance(key, str) else type(key).__name__
    return f"{field}.{name}" if field else name


def _parameters(kind: type[Any]) -> Mapping[str, Parameter]:
    found: Mapping[str, Parameter] = getattr(kind, "PARAMETERS", {})
    return found


def _required(kind: type[Any], name: str) -> bool:
    field: Field[Any] = next(field for field in fields(kind) if field.name == name)
    return field.default is MISSING


SUPERSESSION: Choice[SupersessionPolicy] = Choice(
    {"explicit": ExplicitOnly, "latest-by-subject": LatestBySubject}, methods=("decide",)
)
RECENCY: Choice[RecencyPolicy] = Choice(
    {"none": NoRecency, "exponential": ExponentialRecency},
    methods=("factor",),
    attributes={"is_identity": (True, False), "basis": BASES},
)
FORGETTING: Choice[ForgettingPolicy] = Choice(
    {
        "keep-all": KeepAll,
        "expired-for": ExpiredFor,
        "superseded-for": SupersededFor,
        "max-facts": MaxFacts,
        "prune": Prune,
    },
    methods=("select",),
)
CONSOLIDATION: Choice[ConsolidationPolicy] = Choice(
    {"none": NoConsolidation, "collapse-duplicates": CollapseDuplicates}, methods=("plan",)
)
ADMISSION: Choice[AdmissionPolicy] = Choice(
    {"none": AdmitAll, "standard": StandardAdmission}, methods=("decide",)
)
RANKING: Choice[RankingPolicy] = Choice(
    {"score": ScoreOrder, "relevance": Relevance},
    methods=("parts",),
    attributes={"is_identity": (True, False)},
)
