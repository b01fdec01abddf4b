"""Exports of whole spaces at the command line: written, known by their first line, and imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from perdure.base.text import counted
from perdure.cli.failures import complain
from perdure.cli.previews import count_of
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json, put
from perdure.cli.session import Session
from perdure.cli.streams import standard_input
from perdure.errors import ImportFailed, InvalidRequest
from perdure.model.namespace import Namespace, checked_namespace
from perdure.model.stores import Imported
from perdure.store import Store
from perdure.transfer.reading import HEAD_BYTES, is_export
from perdure.transfer.sources import joined

STDIN = "-"
PROBLEMS_MAX = 50  # on a screen; JSON has them all


class Files:
    """The files of a command line. Standard input is read once, however often one looks at it."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._input: BinaryIO | None = None

    def exports(self) -> list[str]:
        """Return the names of those that begin as an export does."""
        return [name for name in self.names if self._begins_export(name)]

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        if name == STDIN:
            yield standard_input() if self._input is None else self._input
        else:
            with Path(name).open("rb") as stream:
                yield stream

    def _begins_export(self, name: str) -> bool:
        with self.open(name) as stream:
            head = stream.read(HEAD_BYTES)
            if name == STDIN:
                self._input = joined(head, stream)
        return is_export(head)


@dataclass(frozen=True, slots=True)
class Moving:
    """How exports are to be imported."""

    dry_run: bool
    lenient: bool
    into_principal: str | None
    into_scope: str | None

    @property
    def into(self) -> Namespace | None:
        if self.into_principal is None and self.into_scope is None:
            return None
        return checked_namespace(self.into_principal, self.into_scope)


def chosen_spaces(session: Session) -> list[Namespace] | None:
    """Return the space that --principal and --scope name; None when neither is given."""
    if session.principal is None and session.scope is None:
        return None
    return [checked_namespace(session.principal, session.scope)]


def import_exports(session: Session, files: Files, moving: Moving) -> bool:
    """Import the files one after the other, and say what was done; return whether nothing was wrong."""
    reports: dict[str, Imported] = {}
    with session.store(writes=not moving.dry_run) as store:
        for name in files.names:
            reports[name] = _import(store, files, name, session, moving)
    if session.as_json:
        print_json(_object(reports))
    else:
        _show(Screen(), reports)
    problems = [problem for name in reports for problem in _problems(reports[name], name)]
    for problem in problems[:PROBLEMS_MAX]:
        complain(f"{problem['file']}, line {problem['line']}: {problem['reason']}")
    if len(problems) > PROBLEMS_MAX:
        complain(f"… and {len(problems) - PROBLEMS_MAX} more; --json lists them all")
    return not problems


def _import(store: Store, files: Files, name: str, session: Session, moving: Moving) -> Imported:
    with files.open(name) as stream, progress_bar("importing") as progress:
        try:
            return store.import_(
                stream,
                dry_run=moving.dry_run,
                strict=not moving.lenient,
                spaces=chosen_spaces(session),
                into=moving.into,
                progress=progress,
            )
        except ImportFailed as error:
            error.message = f"{_shown(name)}: {error.message}"
            error.args = (error.message,)
            error.details["file"] = _shown(name)
            raise


def export_spaces(
    session: Session,
    output: str,
    *,
    all_spaces: bool,
    filter_: dict[str, Any] | None,
    blocks: bool,
    force: bool,
) -> None:
    """Write an export of one space, or of all, to a file or to standard output."""
    spaces = None if all_spaces else [checked_namespace(session.principal, session.scope)]
    if all_spaces and chosen_spaces(session) is not None:
        raise InvalidRequest("--all-spaces and --principal or --scope contradict each other; give one")
    if output == STDIN:
        with session.store() as store:
            for line in store.export_lines(spaces=spaces, filter=filter_, blocks=blocks):
                put(line)
        return
    with session.store() as store, progress_bar("exporting") as progress:
        done = store.export(
            output, spaces=spaces, filter=filter_, blocks=blocks, force=force, progress=progress
        )
    if session.as_json:
        print_json(
            {
                "exported": {
                    "spaces": done.spaces,
                    "facts": done.facts,
                    "records": done.records,
                    "sizeBytes": done.size_bytes,
                }
            }
        )
    else:
        Screen().line(
            f"{count_of(done.facts)} of {counted(done.spaces, 'memory', 'memories')} written, "
            f"{counted(done.records, 'record')} in all."
        )


def _show(screen: Screen, reports: Mapping[str, Imported]) -> None:
    told = _object(reports)
    what = "would be stored" if told["dryRun"] else "stored"
    screen.line(
        f"{count_of(told['facts'])} {what}, {counted(told['created'], 'record')} in all; "
        f"{counted(told['existing'], 'was', 'were')} known, {counted(told['skipped'], 'is', 'are')} left out."
        + (" Nothing was stored." if told["dryRun"] else "")
    )
    if told["foreignReceipts"]:
        screen.line(
            f"{counted(told['foreignReceipts'], 'answer')} under idempotency keys came from a store with another secret: no "
            "key leads there from here."
        )


def _object(reports: Mapping[str, Imported]) -> dict[str, Any]:
    """Return the reply of the contract; of several files the sum, in which a problem names its file."""
    found = list(reports.values())
    names = {name: None for report in found for name in report.spaces}
    return {
        "created": sum(report.created for report in found),
        "existing": sum(report.existing for report in found),
        "skipped": sum(report.skipped for report in found),
        "facts": sum(report.facts for report in found),
        "spaces": [{"principal": name.principal, "scope": name.scope} for name in names],
        "problems": [
            {
                **({"file": problem["file"]} if len(found) > 1 else {}),
                "line": problem["line"],
                "reason": problem["reason"],
            }
            for name, report in reports.items()
            for problem in _problems(report, name)
        ],
        "foreignReceipts": sum(report.foreign_receipts for report in found),
        "dryRun": any(report.dry_run for report in found),
    }


def _problems(report: Imported, name: str) -> list[dict[str, Any]]:
    return [
        {"file": _shown(name), "line": problem.line, "reason": problem.reason} for problem in report.problems
    ]


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else Path(name).name
