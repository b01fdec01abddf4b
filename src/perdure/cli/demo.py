"""The command `demo`: a small story told to a store of its own, step by step."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli.drawing import show_explanation
from perdure.cli.failures import Failed
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session, command

if TYPE_CHECKING:
    from perdure.cli.story import Step


def add_to(app: typer.Typer) -> None:
    command(app, "demo")(demo)


def demo(
    session: Session,
    *,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="DIR", help="Make the store in this new folder, and leave it."),
    ] = None,
) -> None:
    """Show in a minute what a memory does, on a store of its own that is deleted afterwards.

    Tells a small story and walks through as-of, supersession, correction, explanation and forgetting.

    \b
    Examples:
      perdure demo
      perdure demo --keep perdure-demo
    """
    with ExitStack() as stack:
        if keep is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perdure-demo-")))
        else:
            folder = _new_folder(Path(keep))
        steps = _played(folder)
    if session.as_json:
        print_json({"steps": [_object(step) for step in steps]})
        return
    screen = Screen()
    for number, step in enumerate(steps, 1):
        _show(screen, number, step)
    if keep is not None:
        screen.line("The store is kept. Look around with: perdure --store DIR list")


def _played(folder: Path) -> list[Step]:
    from perdure.base.clock import ManualClock  # noqa: PLC0415 - help must not wait for it
    from perdure.cli.story import CONFIG, Demonstration  # noqa: PLC0415
    from perdure.store import Store  # noqa: PLC0415

    clock = ManualClock()
    with Store.open(folder, clock=clock) as store:
        return Demonstration(store.memory(config=CONFIG), clock, folder).steps()


def _new_folder(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Failed("--keep names something that is there already; name a new folder", field="keep")
    return folder


def _show(screen: Screen, number: int, step: Step) -> None:
    screen.heading(f"{number}. {step.title}")
    screen.fields([("  ", step.says)])
    screen.line()
    if step.explanation is not None:
        show_explanation(screen, step.explanation)
    else:
        screen.table(step.headers, step.rows)
    screen.line()


def _object(step: Step) -> dict[str, Any]:
    from perdure.contract.wire import explanation_object  # noqa: PLC0415 - only where it is printed

    told: dict[str, Any] = {"title": step.title, "says": step.says}
    if step.explanation is None:
        told["rows"] = [dict(zip(step.headers, row, strict=True)) for row in step.rows]
    else:
        told["explanation"] = explanation_object(step.explanation)
    return told
