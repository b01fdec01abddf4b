"""Commands that read and write files: import, export."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.failures import Failed, complain
from perdure.cli.screen import Screen, console, print_json, put
from perdure.cli.session import Session, command
from perdure.cli.streams import standard_input
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.importers.entries import Bad, Entry
    from perdure.importers.importing import Progress, Report
    from perdure.importers.sources import Format

BAD_MAX = 50  # lines of complaint on a screen; JSON has them all


class ImportFailed(Failed):
    """Something in the files is wrong; nothing was stored."""

    code = "import_failed"


def add_to(app: typer.Typer) -> None:
    command(app, "import")(import_files)
    command(app, "export")(export)


def import_files(
    session: Session,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files; - is standard input.")],
    *,
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="auto, jsonl or conversation.")
    ] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the files; store nothing.")] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient/--strict", help="Store what is good; strict stores all or nothing.")
    ] = False,
) -> None:
    """Store the facts of files: JSON Lines, conversations, or zip archives of them.

    A line of JSON Lines is an object with the fields of a fact (text, id, subject, validFrom, …). A conversation
    is an object with lists session_1, session_2, … of turns {speaker, dia_id, text}; each turn is a fact,
    each conversation a principal of its own unless --principal is given. A repeat stores nothing new.
    """
    from perdure.importers.importing import Target, import_entries  # noqa: PLC0415 - help must not wait

    form = _format(format_)
    with session.store(writes=not dry_run) as store, _progress() as progress:
        target = Target(store, session.principal, session.scope, session.config)
        report = import_entries(
            _entries(files, form), target, lenient=lenient, dry_run=dry_run, progress=progress
        )
    stopped = bool(report.bad) and not (lenient or dry_run)
    if session.as_json and not stopped:
        print_json({"imported": _report_object(report)})
    elif not stopped:
        _show(Screen(), report, session.scope)
    for bad in report.bad[:BAD_MAX]:
        complain(f"{bad.place}: {bad.reason}")
    if len(report.bad) > BAD_MAX:
        complain(f"… and {len(report.bad) - BAD_MAX} more; --json lists them all")
    if stopped:
        raise ImportFailed(
            f"{len(report.bad)} of {len(report.bad) + report.good} entries are bad and nothing was stored; "
            "mend them, or give --lenient to store the others",
            bad=[_bad_object(bad) for bad in report.bad],
        )
    if report.bad:
        raise typer.Exit(1)


def export(
    session: Session,
    *,
    output: Annotated[
        str, typer.Option("--output", metavar="FILE", help="A new file; - is standard output.")
    ] = "-",
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
) -> None:
    """Write the facts of one memory as JSON Lines that import reads back as new facts.

    This is no lossless copy: when facts were recorded is not in it, links are written as supersedes only,
    ends that were told later become validTo, and retracted and hidden facts are left out.
    """
    from perdure.importers.exporting import export_facts  # noqa: PLC0415 - help must not wait for it

    with session.memory() as memory:
        lines = (
            json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"
            for told in export_facts(memory)
        )
        if output == "-":
            for line in lines:
                put(line.encode())
            return
        count = _write(Path(output), lines, force=force)
    if session.as_json:
        print_json({"exported": count})
    else:
        Screen().line(f"{count} facts written.")


def _write(path: Path, lines: Iterator[str], *, force: bool) -> int:
    """Write the lines beside the file and move them there whole; return how many.

    Whatever fails, a file that was there before is as it was. The new one is for its owner alone.
    """
    _check_target(path, force=force)
    count = 0
    with _outside():
        descriptor, name = tempfile.mkstemp(prefix=".perdure-", suffix=".partial", dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            for line in lines:
                with _outside():
                    stream.write(line)
                count += 1
            with _outside():
                stream.flush()
                os.fsync(stream.fileno())
        # What came into being meanwhile is somebody's as well.
        _check_target(path, force=force)
        with _outside():
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _check_target(path: Path, *, force: bool) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return  # it is not there, or making it will say what is wrong
    if not stat.S_ISREG(mode):
        raise Failed("the output is a link, a folder or a device; name a file", field="output")
    if not force:
        raise Failed("the output file exists; --force writes over it", field="output")


@contextmanager
def _outside() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failed(f"the output file cannot be written: {error.strerror}", field="output") from error


def _entries(files: list[str], form: Format) -> Iterator[Entry]:
    from perdure.importers.sources import read_file, read_stream  # noqa: PLC0415 - help must not wait

    for file in files:
        if file == "-":
            yield from read_stream(standard_input(), "standard input", form)
        else:
            yield from read_file(Path(file), form)


def _format(told: str) -> Format:
    from perdure.importers.sources import FORMATS  # noqa: PLC0415 - help must not wait for it

    for form in FORMATS:
        if told == form:
            return form
    raise InvalidRequest(f"--format must be one of {', '.join(FORMATS)}, got {told[:32]!r}", field="format")


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Show a bar on standard error when it is a terminal."""
    from rich.progress import Progress as Bar  # noqa: PLC0415 - only where something is imported

    errors = console(sys.stderr)
    if not errors.is_terminal:
        yield None
        return
    with Bar(console=errors, transient=True) as bar:
        task = bar.add_task("importing", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _show(screen: Screen, report: Report, scope: str | None) -> None:
    if report.dry_run:
        screen.line(f"{report.good} facts are good, {len(report.bad)} entries are bad. Nothing was stored.")
        return
    known = report.outcomes.get("existing", 0)
    screen.line(
        f"{report.stored} facts stored, {known} were known, {len(report.bad)} entries are bad and left out."
    )
    named = [name for name in report.principals if name]
    if named:
        screen.fields([("principals", ", ".join(named))])
        where = _option("--principal", named[0]) + (_option("--scope", scope) if scope else "")
        screen.line(f'Ask one: perdure recall "…"{where}')


def _option(name: str, value: str) -> str:
    """Return an option as it is typed; a value that looks like an option is joined to it."""
    return f" {name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


def _report_object(report: Report) -> dict[str, Any]:
    return {
        "good": report.good,
        "stored": report.stored,
        "outcomes": report.outcomes,
        "bad": [_bad_object(bad) for bad in report.bad],
        "dryRun": report.dry_run,
        "principals": list(report.principals),
    }


def _bad_object(bad: Bad) -> dict[str, Any]:
    place = bad.place
    return {"file": place.file, "line": place.line, "entry": place.entry, "reason": bad.reason}
