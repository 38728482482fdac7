"""Help texts that show flags, such as ``--json``, without a value type."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption


class FlagsCommand(TyperCommand):
    """A command whose help text shows flags without a value type."""

    def get_help_option(self, ctx: Any) -> TyperOption | None:  # noqa: ANN401 - a private type
        """Return the help option; typer calls this before it shows the options."""
        return _without_types(self, super().get_help_option(ctx))


class FlagsGroup(TyperGroup):
    """A group of commands whose help text shows flags without a value type."""

    def get_help_option(self, ctx: Any) -> TyperOption | None:  # noqa: ANN401 - a private type
        """Return the help option; typer calls this before it shows the options."""
        return _without_types(self, super().get_help_option(ctx))


def _without_types(
    command: TyperCommand | TyperGroup, help_option: TyperOption | None
) -> TyperOption | None:
    for option in (*command.params, help_option):
        if isinstance(option, TyperOption) and option.is_flag and option.metavar is None:
            option.metavar = ""
    return help_option
