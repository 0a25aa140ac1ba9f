"""Labels of charts: what they are shortened to, so that they fit, still differ and still mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from os.path import commonprefix

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_WORD = re.compile(r"(?:[^\W_]|(?<=\d)[.,:-](?=\d))+")
"""What is not cut: letters, and a number or date with its signs."""
_PHRASE = re.compile(r".*[,;:] ")
_ENDS = ",;:)"
"""After which a label is best wrapped; or else before a bracket."""


def common_phrase(texts: Iterable[str], most: int) -> str:
    """The phrase that all begin with, such as ``deletion vectors, ``; empty where there is none, or all fit as they
    are. What is left when it is taken off distinguishes them, so it must be named elsewhere."""
    known = list(dict.fromkeys(texts))
    if len(known) < 2 or all(len(line) <= most for text in known for line in text.split("\n")):
        return ""
    found = _PHRASE.match(commonprefix(known))  # noqa: RUF071 - of letters
    phrase = found[0] if found else ""
    return "" if "\n" in phrase or any(text == phrase for text in known) else phrase


def shortened(texts: Iterable[str], most: int, *, wrapped: bool = False) -> dict[str, str]:
    """What texts are shortened to, line by line: those that differ still do. A line that is too long is cut between
    words; where it may be `wrapped`, it becomes two if that is enough."""
    texts = list(texts)
    alike: dict[str, list[str]] = {}
    for line in dict.fromkeys(line for text in texts for line in text.split("\n")):
        own = (_wrapped(line, most) if wrapped else None) or _shortened(line, most)
        alike.setdefault(own, []).append(line)
    short = {line: label for label, (line, *others) in alike.items() if not others}
    for lines in alike.values():
        short |= _apart(lines, most) if len(lines) > 1 else {}
    return {text: "\n".join(short[line] for line in text.split("\n")) for text in texts}


def _wrapped(line: str, most: int) -> str | None:
    """The line as two, wrapped at a space, after a phrase if possible; None where it fits, or that is not enough."""
    places = [at for at, letter in enumerate(line) if letter == " " and at <= most and len(line) - at - 1 <= most]
    if len(line) <= most or not places:
        return None
    phrases = [at for at in places if line[at - 1] in _ENDS or line[at + 1] == "("]
    at = (phrases or places)[-1]
    return f"{line[:at]}\n{line[at + 1 :]}"


def _shortened(text: str, most: int) -> str:
    """A line's beginning and its end: most names of layouts with knobs differ in either."""
    if len(text) <= most:
        return text
    places = _between_words(text)
    start = next((at for at in places if at >= len(text) - (most - 1) // 2), len(text))
    room = most - 1 - (len(text) - start)
    # A word that leaves no room for others is cut at its end, which no other word has.
    end = next((at for at in reversed(places) if 0 < at <= room), room)
    return f"{text[:end]}{_ELLIPSIS}{text[start:]}"


def _apart(lines: Sequence[str], most: int) -> dict[str, str]:
    """Lines that begin and end alike: the words in which they differ, as long as these are, and as much of both ends as
    has room."""
    places = {line: _between_words(line) for line in lines}
    same = len(commonprefix(lines))  # noqa: RUF071 - of letters
    first = max(at for at in range(same + 1) if all(at in own for own in places.values()))
    same = len(commonprefix([line[first:][::-1] for line in lines]))  # noqa: RUF071
    last = max(at for at in range(same + 1) if all(len(line) - at in own for line, own in places.items()))
    around = max(2, most - 2 - max(len(line) - first - last for line in lines))
    found = {}
    for line, own in places.items():
        head = max(at for at in own if at <= min(around - around // 2, first))
        tail = min(at for at in own if at >= len(line) - min(around // 2, last))
        before, after = _ELLIPSIS if head < first else "", _ELLIPSIS if tail > len(line) - last else ""
        found[line] = f"{line[:head]}{before}{line[first : len(line) - last]}{after}{line[tail:]}"
    return found


def _between_words(text: str) -> list[int]:
    """The places at which no word is cut, with both ends."""
    inside = {at for word in _WORD.finditer(text) for at in range(word.start() + 1, word.end())}
    return [at for at in range(len(text) + 1) if at not in inside]
