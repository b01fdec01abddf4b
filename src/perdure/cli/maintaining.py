"""Commands that run the configuration's policies: apply-forgetting, consolidate. Both only show, unless told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli import options as o
from perdure.cli.erasing import CertificateOption, PurgeFlag, certificate_file
from perdure.cli.failures import Failed, complain
from perdure.cli.previews import ask, count_of, show_leaving
from perdure.cli.removing import ChainFlag, DerivedFlag, answer_forgotten, ask_to_forget
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session, command

if TYPE_CHECKING:
    from perdure.model.replies import Consolidated
    from perdure.store import Memory

Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this it is only shown.")]


NO_POLICY = "no {0} policy is configured ({0} is {1}), so there is nothing to do: name one, such as {2}, in the file of --config"


def add_to(app: typer.Typer) -> None:
    command(app, "apply-forgetting")(apply_forgetting)
    command(app, "consolidate")(consolidate)


def apply_forgetting(  # noqa: PLR0913 - one parameter per option
    session: Session,
    *,
    include_chain: ChainFlag = False,
    include_derived: DerivedFlag = False,
    apply: Apply = False,
    purge: PurgeFlag = False,
    certificate: CertificateOption = None,
    yes: o.Yes = False,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Show what the configuration's forgetting policy would remove; with --apply remove it.

    Asks first; what was shown is what goes. Pinned facts stay. The usual policy, keep-all, names nothing.

    \b
    Examples:
      perdure apply-forgetting --config memory.json
      perdure apply-forgetting --config memory.json --apply --yes
    """
    which: dict[str, Any] = {"include_chain": include_chain, "include_derived": include_derived}
    how: dict[str, Any] = {"purge": purge, "idempotency_key": idempotency_key}
    with (
        session.memory(changes=apply) as memory,
        certificate_file(certificate, dry_run=not apply) as keep,
    ):
        if memory.config.forgetting == "keep-all":
            complain(NO_POLICY.format("forgetting", "keep-all", "prune"))
        if not apply or not yes:
            preview = memory.apply_forgetting(**which)
            if not apply:
                answer_forgotten(session, memory, preview)
                return
            ask_to_forget(memory, preview)
            # Only what was shown may go, also if others write meanwhile.
            reply = memory.forget(ids=preview.forgotten, **how)
        else:
            reply = memory.apply_forgetting(**which, dry_run=False, **how)
        keep(reply.certificate)
        answer_forgotten(session, memory, reply)


def consolidate(
    session: Session,
    *,
    allow_destructive: Annotated[
        bool, typer.Option("--allow-destructive", help="Forget merged facts where the policy asks for it.")
    ] = False,
    apply: Apply = False,
    yes: o.Yes = False,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Show what the configuration's consolidation policy would merge; with --apply merge it.

    Asks first. The policy is asked anew after the question; when its answer is another one by then, nothing is
    changed. The usual policy, none, merges nothing.

    \b
    Examples:
      perdure consolidate --config memory.json
      perdure consolidate --config memory.json --apply --allow-destructive
    """
    with session.memory(changes=apply) as memory:
        if memory.config.consolidation == "none":
            complain(NO_POLICY.format("consolidation", "none", "collapse-duplicates"))
        if not apply or not yes:
            preview = memory.consolidate(allow_destructive=allow_destructive)
            if not apply:
                _answer(session, memory, preview)
                return
            _ask(memory, preview)
            if memory.consolidate(allow_destructive=allow_destructive) != preview:
                raise Failed(
                    "others wrote meanwhile, so the plan is another one; nothing was changed. Look again"
                )
        reply = memory.consolidate(
            dry_run=False, allow_destructive=allow_destructive, idempotency_key=idempotency_key
        )
        _answer(session, memory, reply)


def _ask(memory: Memory, preview: Consolidated) -> None:
    if not (preview.created or preview.forgotten):
        return
    added, gone = count_of(len(preview.created)), count_of(len(preview.forgotten))
    ask(
        f"Add {added} and forget {gone}?",
        lambda screen: show_leaving(screen, memory, preview.forgotten),
        refused="nothing was changed",
    )


def _answer(session: Session, memory: Memory, reply: Consolidated) -> None:
    if session.as_json:
        from perdure.contract.wire import consolidated_object  # noqa: PLC0415 - only where it is printed

        print_json(consolidated_object(reply))
        return
    screen = Screen()
    added, gone = count_of(len(reply.created)), count_of(len(reply.forgotten))
    if reply.dry_run:
        show_leaving(screen, memory, reply.forgotten)
        screen.line(f"{added} would be added and {gone} would go. Nothing was changed.")
    else:
        screen.line(f"{added} added, {gone} forgotten.")
