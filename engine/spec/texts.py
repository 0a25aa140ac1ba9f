"""Texts that metadata hold."""

from __future__ import annotations

from typing import TypeGuard

from icebench.engine.errors import Invalid


def is_text(value: object) -> TypeGuard[str]:
    """Whether it is a text that UTF-8 has: no half of a surrogate pair, which JSON can write and nobody read."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(what: str, value: object) -> None:
    """Refuse what is no text.

    Args:
        what: It is, for the error: ``the name of a branch``.
        value: As the user gave it.

    Raises:
        Invalid: It is none.
    """
    if not is_text(value):
        raise Invalid(f"{what} is a text, not {value!r}")
