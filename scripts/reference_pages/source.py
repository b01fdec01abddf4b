"""Reads the package's sources without importing them: names, signatures, fields, docstrings, constants.

So that no page depends on the Python that makes it, or on which extras are installed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "src"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = ast.ClassDef | Function | ast.Assign | ast.AnnAssign
SENTINELS = ("UNSET",)  # names that say more than their value
SHOWN_MAX = 40  # a longer constant is shown by its name


@dataclass(frozen=True)
class Found:
    """Something that a module defines: its name, the module's dotted name, and the node of its definition."""

    name: str
    module: str
    node: Node

    @property
    def doc(self) -> str:
        """The docstring, without its indentation; empty where there is none."""
        if isinstance(self.node, ast.ClassDef | Function):
            return inspect.cleandoc(ast.get_docstring(self.node, clean=False) or "")
        return _text_after(self.module, self.node)

    def text(self, node: ast.AST) -> str:
        """Return a part of the definition as it is written."""
        first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
        lines = list(_lines(self.module)[first : last + 1])
        lines[-1] = lines[-1][: node.end_col_offset]  # type: ignore[attr-defined]
        lines[0] = lines[0][node.col_offset :]  # type: ignore[attr-defined]
        return b"\n".join(lines).decode()

    def segment(self, node: ast.AST) -> str:
        """Return a part of the definition as it is written, on one line."""
        text = self.text(node)
        lines = [line.split("  # ")[0].strip() for line in text.splitlines()]
        joined = " ".join(lines) if len(lines) > 1 else text
        for opening, closing in ("[]", "()"):
            joined = joined.replace(f"{opening} ", opening).replace(f", {closing}", closing)
            joined = joined.replace(f" {closing}", closing)
        return joined


@dataclass(frozen=True)
class Field:
    """A field of a value: its default and its comment, None where there is none."""

    name: str
    annotation: str
    default: str | None
    comment: str | None


@dataclass(frozen=True)
class Callable:
    """A function or method: its parameters as they are written, without self."""

    found: Found
    parameters: tuple[str, ...]
    returns: str
    kind: str  # function, method, classmethod, staticmethod, property

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return [text.lstrip("*").split(":")[0].split("=")[0] for text in self.parameters if text not in "*/"]


def find(module: str, name: str) -> Found:
    """Return what a name of a module means, through its imports; LookupError where the package has no such name."""
    for statement in _statements(tree(module).body):
        if _defines(statement, name):
            return Found(name, module, statement)  # type: ignore[arg-type]
        if isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                if (alias.asname or alias.name) == name and statement.module.startswith("perdure"):
                    return find(statement.module, alias.name)
    raise LookupError(f"{module} has no {name}")


def exported(module: str) -> list[str]:
    """Return the names in a module's `__all__`, in its order."""
    for statement in _statements(tree(module).body):
        if _defines(statement, "__all__") and isinstance(statement, ast.Assign):
            return list(ast.literal_eval(statement.value))
    raise LookupError(f"{module} has no __all__")


def fields(found: Found) -> list[Field]:
    """Return the fields of a value, those of its bases first."""
    assert isinstance(found.node, ast.ClassDef)
    own = []
    for statement in found.node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        annotation = found.segment(statement.annotation)
        if statement.target.id.startswith("_") or annotation.startswith("ClassVar"):
            continue
        default = None if statement.value is None else _default(found, statement.value)
        comment = _comment(found.module, statement)
        own.append(Field(statement.target.id, annotation, default, comment))
    return [field for base in bases(found) for field in fields(base)] + own


def bases(found: Found) -> list[Found]:
    """Return the bases of a class that the package defines."""
    assert isinstance(found.node, ast.ClassDef)
    known = []
    for base in found.node.bases:
        try:
            known.append(find(found.module, found.segment(base).split("[")[0]))
        except LookupError:
            continue
    return [base for base in known if isinstance(base.node, ast.ClassDef)]


def base_names(found: Found) -> list[str]:
    """Return the bases of a class as they are written."""
    assert isinstance(found.node, ast.ClassDef)
    return [found.segment(base) for base in found.node.bases]


def methods(found: Found) -> dict[str, Callable]:
    """Return the public methods and properties of a class, those of its bases first, each in order."""
    assert isinstance(found.node, ast.ClassDef)
    known = {name: method for base in bases(found) for name, method in methods(base).items()}
    for statement in found.node.body:
        if isinstance(statement, Function) and not statement.name.startswith("_"):
            known[statement.name] = callable_of(Found(statement.name, found.module, statement))
    return known


def constructor(found: Found) -> Callable | None:
    """Return a class's own `__init__`, if it has one."""
    assert isinstance(found.node, ast.ClassDef)
    for statement in found.node.body:
        if isinstance(statement, Function) and statement.name == "__init__":
            return callable_of(Found("__init__", found.module, statement))
    return None


def callable_of(found: Found) -> Callable:
    """Return how a function is called."""
    node = found.node
    assert isinstance(node, Function)
    told = {found.segment(decorator) for decorator in node.decorator_list}
    parameters = list(_parameters(found, node.args))
    is_method = bool(parameters) and parameters[0] in ("self", "cls")
    returns = "" if node.returns is None else found.segment(node.returns)
    special = [kind for kind in ("property", "classmethod", "staticmethod") if kind in told]
    kind = special[0] if special else "method" if is_method else "function"
    return Callable(found, tuple(parameters[1:] if is_method else parameters), returns, kind)


def twins(found: Found) -> dict[str, str]:
    """Return the calls of a class that another class's are made into: their names, each with its twin's."""
    assert isinstance(found.node, ast.ClassDef)
    made = {}
    for part in found.node.body:
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call):
            target = part.targets[0]
            if isinstance(target, ast.Name) and found.segment(part.value.func) == "_threaded":
                made[target.id] = found.segment(part.value.args[0])
    return made


def constants(module: str) -> list[tuple[str, str, str | None]]:
    """Return the constants of a module, each with its value as it is written and its comment."""
    found = []
    for statement in tree(module).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name.isupper() and not name.startswith("_"):
                text = Found(name, module, statement).segment(statement.value)
                found.append((name, text, _comment(module, statement)))
    return found


def texts(folder: str = "") -> Iterator[str]:
    """Yield every text constant of the sources below a folder of the package."""
    for path in sorted((PACKAGE / "perdure" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def classes(module: str) -> list[str]:
    """Return the names of the classes of a module, in order."""
    return [node.name for node in tree(module).body if isinstance(node, ast.ClassDef)]


def calls(name: str) -> Iterator[ast.Call]:
    """Yield every call of a plain name in the package's sources."""
    for path in sorted((PACKAGE / "perdure").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield node


def _parameters(found: Found, told: ast.arguments) -> Iterator[str]:
    plain = [*told.posonlyargs, *told.args]
    defaults = [None] * (len(plain) - len(told.defaults)) + list(told.defaults)
    for place, (argument, default) in enumerate(zip(plain, defaults, strict=True), 1):
        yield _parameter(found, argument, default)
        if place == len(told.posonlyargs):
            yield "/"
    if told.vararg is not None:
        yield f"*{_parameter(found, told.vararg, None)}"
    elif told.kwonlyargs:
        yield "*"
    for argument, default in zip(told.kwonlyargs, told.kw_defaults, strict=True):
        yield _parameter(found, argument, default)
    if told.kwarg is not None:
        yield f"**{_parameter(found, told.kwarg, None)}"


def _parameter(found: Found, argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg
    if argument.annotation is not None:
        text += f": {found.segment(argument.annotation)}"
    if default is None:
        return text
    return f"{text}{' = ' if argument.annotation is not None else '='}{_default(found, default)}"


def _default(found: Found, value: ast.expr) -> str:
    """Return a default as a reader needs it: constants by their value, factories by what they make."""
    if isinstance(value, ast.Call) and found.segment(value.func) in ("field", "msgspec.field"):
        told = {keyword.arg: keyword.value for keyword in value.keywords}
        if "default" in told:
            return _default(found, told["default"])
        if "default_factory" in told:
            return {"dict": "{}", "list": "[]"}.get(found.segment(told["default_factory"]), "...")
        return "..."
    constant = _constant(found.module, value)
    return found.segment(value) if constant is None else constant


def _constant(module: str, value: ast.expr) -> str | None:
    """Return the value that a name in capitals stands for, as it is written where it is set."""
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        home, name = _module_of(module, value.value.id), value.attr
    elif isinstance(value, ast.Name):
        home, name = module, value.id
    else:
        return None
    if home is None or not name.isupper() or name in SENTINELS:
        return None
    try:
        found = find(home, name)
    except LookupError:
        return None
    node = found.node
    assert isinstance(node, ast.Assign | ast.AnnAssign)
    assert node.value is not None
    told = _default(found, node.value)
    return told if len(told) <= SHOWN_MAX else None


def _module_of(module: str, alias: str) -> str | None:
    for statement in _statements(tree(module).body):
        if isinstance(statement, ast.ImportFrom) and statement.module:
            for name in statement.names:
                if (name.asname or name.name) == alias and _path(f"{statement.module}.{name.name}").exists():
                    return f"{statement.module}.{name.name}"
    return None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):  # what is imported for types only
            yield from _statements(statement.body)


def _defines(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.ClassDef | Function):
        return statement.name == name
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    if isinstance(statement, ast.AnnAssign):
        return isinstance(statement.target, ast.Name) and statement.target.id == name
    return False


def _comment(module: str, statement: ast.stmt) -> str | None:
    line = _lines(module)[(statement.end_lineno or 1) - 1]
    rest = line[statement.end_col_offset or 0 :].decode().strip()
    if not rest.startswith("#") or rest.startswith(("# noqa", "# type:")):
        return None
    return rest.lstrip("# ")


def _text_after(module: str, node: Node) -> str:
    """Return the text that stands below an assignment as its docstring, else its comment."""
    body = tree(module).body
    place = body.index(node) + 1
    if place < len(body):
        after = body[place]
        if (
            isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            return inspect.cleandoc(after.value.value)
    return _comment(module, node) or ""


def _path(module: str) -> Path:
    base = PACKAGE / Path(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@cache
def _source(module: str) -> str:
    path = _path(module)
    if not path.exists():
        raise LookupError(f"there is no module {module}")
    return path.read_text(encoding="utf-8")


@cache
def _lines(module: str) -> tuple[bytes, ...]:
    """Return the lines as bytes, which is what the offsets of nodes count."""
    return tuple(_source(module).encode().split(b"\n"))


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(_source(module))


def class_constants(found: Found, names: tuple[str, ...]) -> dict[str, str]:
    """Return the values of plain assignments in a class, as text."""
    assert isinstance(found.node, ast.ClassDef)
    told = {}
    for statement in found.node.body:
        target = (
            statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        )
        value = getattr(statement, "value", None)
        if isinstance(target, ast.Name) and target.id in names and isinstance(value, ast.Constant):
            told[target.id] = str(value.value)
    return told
