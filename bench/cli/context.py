"""What every command is given: the places of files and the terminal."""

from __future__ import annotations

from dataclasses import dataclass, field

import click

from icebench.bench.cli.places import Places
from icebench.bench.cli.terminal import Terminal


@dataclass(frozen=True)
class Context:
    """Made by the group from its options, before any command runs."""

    places: Places = field(default_factory=Places)
    terminal: Terminal = field(default_factory=Terminal)


pass_context = click.make_pass_decorator(Context, ensure=True)
