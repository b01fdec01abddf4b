"""Commands that read and write files: import, export."""

from __future__ import annotations

import json
import os
import shlex
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.failures import Failed, complain
from perdure.cli.previews import count_of
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json, put
from perdure.cli.session import Session, command
from perdure.errors import ImportFailed, InvalidRequest

if TYPE_CHECKING:
    from perdure.cli.moving import Files, Moving
    from perdure.importers.entries import Bad, Entry
    from perdure.importers.importing import Report
    from perdure.importers.sources import Format

BAD_MAX = 50  # lines of complaint on a screen; JSON has them all


def add_to(app: typer.Typer) -> None:
    command(app, "import")(import_files)
    command(app, "export")(export)


def import_files(  # noqa: PLR0913 - the options of the command
    session: Session,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files; - is standard input.")],
    *,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="auto, jsonl or conversation. Default: auto, by what is in the file.",
            autocompletion=o.one_of("auto", "jsonl", "conversation"),
        ),
    ] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the files; store nothing.")] = False,
    lenient: Annotated[
        bool,
        typer.Option(
            "--lenient/--strict", help="Store what is good; strict, the default, stores all or nothing."
        ),
    ] = False,
    into_principal: Annotated[
        str | None,
        typer.Option(
            "--into-principal", metavar="NAME", help="Store the one space of an export under this name."
        ),
    ] = None,
    into_scope: Annotated[
        str | None,
        typer.Option(
            "--into-scope", metavar="NAME", help="Store the one space of an export under this scope."
        ),
    ] = None,
) -> None:
    """Store what files hold: whole memories out of exports, or facts.

    An export is known by its first line and brings memories back as they were; with --principal or --scope, that
    one alone. Facts come from JSON Lines, conversations, and zip archives of them. A line of JSON Lines is an
    object with the fields of a fact (text, id, subject, validFrom, …). A conversation is an object with lists
    session_1, session_2, … of turns {speaker, dia_id, text}; each turn is a fact, each conversation a principal of
    its own unless --principal is given. A repeat stores nothing new.

    \b
    Examples:
      perdure import backup.jsonl --dry-run
      perdure import facts.jsonl --principal anna --lenient
      perdure import chats.zip --format conversation
    """
    from perdure.cli.moving import Files, Moving, import_exports  # noqa: PLC0415 - help must not wait for it

    form, told = _format(format_), Files(files)
    exports = told.exports() if form == "auto" else []
    moving = Moving(dry_run, lenient, into_principal, into_scope)
    if not exports:
        if moving.into is not None:
            raise InvalidRequest(
                "--into-principal and --into-scope go with exports; give --principal, --scope"
            )
        _import_facts(session, told, form, moving)
    elif len(exports) < len(files):
        raise InvalidRequest("some of the files are exports and some are not; import them by two commands")
    elif not import_exports(session, told, moving):
        raise typer.Exit(1)


def _import_facts(session: Session, files: Files, form: Format, moving: Moving) -> None:
    from perdure.importers.importing import Target, import_entries  # noqa: PLC0415 - help must not wait

    dry_run, lenient = moving.dry_run, moving.lenient
    with session.store(writes=not dry_run) as store, progress_bar("importing") as progress:
        target = Target(store, session.principal, session.scope, store.config)
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
            f"{len(report.bad)} of {counted(len(report.bad) + report.good, 'entry is', 'entries are')} bad and nothing was "
            "stored; mend what is, or give --lenient to store the others",
            committed="no",
            bad=[_bad_object(bad) for bad in report.bad],
        )
    if report.bad:
        raise typer.Exit(1)


def export(  # noqa: PLR0913 - one parameter per option
    session: Session,
    *,
    output: Annotated[
        str, typer.Option("--output", metavar="FILE", help="A new file; -, the default, is standard output.")
    ] = "-",
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    all_spaces: Annotated[
        bool, typer.Option("--all-spaces", help="Export every memory of the store.")
    ] = False,
    blocks: Annotated[
        bool, typer.Option("--blocks", help="Export also what may not be stored again, as keyed digests.")
    ] = False,
    filter_: o.Filter = None,
    facts: Annotated[
        bool, typer.Option("--facts", help="Write facts that import tells anew instead, as NewFact lines.")
    ] = False,
) -> None:
    """Write one memory, or all of a store, as readable lines that import brings back without loss.

    With --filter, write what it matches, as though all else had been forgotten.

    With --facts, write the visible facts of one memory as JSON Lines that are told anew where they are imported.
    That is no lossless copy: when facts were recorded is not in it, links are written as supersedes only, ends
    that were told later become validTo, and retracted and hidden facts are left out.

    \b
    Examples:
      perdure export --all-spaces --output all.jsonl
      perdure export --principal anna --filter '{"team":"a"}' > team.jsonl
    """
    where = o.json_object(filter_, "filter")
    if facts:
        if all_spaces or blocks:
            raise InvalidRequest("--facts writes one memory, and no blocks; leave the other option out")
        _export_facts(session, output, where, force=force)
        return
    from perdure.cli.moving import export_spaces  # noqa: PLC0415 - help must not wait for it

    export_spaces(session, output, all_spaces=all_spaces, filter_=where, blocks=blocks, force=force)


def _export_facts(session: Session, output: str, where: dict[str, Any] | None, *, force: bool) -> None:
    from perdure.importers.exporting import export_facts  # noqa: PLC0415 - help must not wait for it

    with session.memory() as memory:
        lines = (
            json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"
            for told in export_facts(memory, filter=where)
        )
        if output == "-":
            for line in lines:
                put(line.encode())
            return
        count = _write(Path(output), lines, force=force)
    if session.as_json:
        print_json({"exported": count})
    else:
        Screen().line(f"{count_of(count)} written.")


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


def _entries(files: Files, form: Format) -> Iterator[Entry]:
    from perdure.importers.sources import read_stream  # noqa: PLC0415 - help must not wait

    for file in files.names:
        with files.open(file) as stream:
            yield from read_stream(stream, "standard input" if file == "-" else Path(file).name, form)


def _format(told: str) -> Format:
    from perdure.importers.sources import FORMATS  # noqa: PLC0415 - help must not wait for it

    for form in FORMATS:
        if told == form:
            return form
    raise InvalidRequest(f"--format must be one of {', '.join(FORMATS)}, got {told[:32]!r}", field="format")


def _show(screen: Screen, report: Report, scope: str | None) -> None:
    bad = counted(len(report.bad), "entry is", "entries are")
    if report.dry_run:
        screen.line(
            f"{count_of(report.good)} {'is' if report.good == 1 else 'are'} good, {bad} bad. Nothing was stored."
        )
        return
    known = report.outcomes.get("existing", 0)
    screen.line(
        f"{count_of(report.stored)} stored, {counted(known, 'was', 'were')} known, {bad} bad and left out."
    )
    if merged := report.outcomes.get("merged", 0):
        screen.line(f"{merged} were merged into facts that say the same.")
    if refused := report.outcomes.get("refused", 0):
        screen.line(f"{refused} were refused by the configuration's admission policy.")
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
