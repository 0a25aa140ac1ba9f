"""Texts that metadata hold."""

from __future__ import annotations

from icebench.engine.errors import Invalid


def check_text(what: str, value: object) -> None:
    """Refuse what is no text, and a text that UTF-8 does not have: half of a surrogate pair, which JSON can write and
    nobody read.

    Args:
        what: It is, for the error: ``the name of a branch``.
        value: As the user gave it.

    Raises:
        Invalid: It is none.
    """
    if not isinstance(value, str):
        raise Invalid(f"{what} is a text, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"{what}, {value!r}, is no text of Unicode: {error.reason}") from None
