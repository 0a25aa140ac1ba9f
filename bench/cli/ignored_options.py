"""Refuses options that would have no effect beside others."""

from __future__ import annotations

import click
from click.core import ParameterSource


def refuse_options(*names: str, because: str) -> None:
    """Refuse parameters of the current command that were given.

    Args:
        names: Of the parameters.
        because: What follows the option's name in the message, such as ``needs --base``.

    Raises:
        click.UsageError: One was given.
    """
    context = click.get_current_context()
    for each in context.command.params:
        source = context.get_parameter_source(each.name or "")
        if each.name in names and source not in (None, ParameterSource.DEFAULT):
            raise click.UsageError(f"{each.opts[-1]} {because}")
