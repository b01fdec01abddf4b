"""Makes the command line out of what is registered: each command only when it is asked for, as a start needs one."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from perdure.cli.session import signed


def make(app: typer.Typer) -> Any:
    """Return the group of commands that an app registers, for typer to run."""
    bare = copy.copy(app)
    bare.registered_commands, bare.registered_groups = [], []
    group: Any = typer.main.get_command(bare)
    group.commands = Commands(app)
    return group


class Commands(Mapping[str, Any]):
    """The commands of a group by name, in the order in which they were registered, then the groups in it."""

    def __init__(self, app: typer.Typer) -> None:
        self._commands = {str(one.name): one for one in app.registered_commands}
        self._groups = {str(one.name): one for one in app.registered_groups}
        self._made: dict[str, Any] = {}

    def __iter__(self) -> Iterator[str]:
        yield from self._commands
        yield from self._groups

    def __len__(self) -> int:
        return len(self._commands) + len(self._groups)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            group = self._groups.get(name)
            self._made[name] = self._command(name) if group is None else make(_app_of(group))
        return self._made[name]

    def _command(self, name: str) -> Any:
        told = copy.copy(self._commands[name])
        assert told.callback is not None
        told.callback = signed(told.callback)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.registered_commands.append(told)
        return typer.main.get_command(alone)


def _app_of(group: Any) -> typer.Typer:
    app = group.typer_instance
    assert isinstance(app, typer.Typer)
    return app
