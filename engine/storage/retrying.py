"""The one policy for requests to object stores that fail for the moment: they are sent again, with growing waits.

The clients below have retries of their own, with gaps: pyarrow's reads the body of an error into the buffer of what was
asked for, and gives up where the buffer is smaller.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

_MIN_WAIT_SECONDS, _MAX_WAIT_SECONDS = 0.1, 5.0
_DEADLINE_SECONDS = 60.0
_TRANSIENT = re.compile(
    r"NETWORK_CONNECTION|INTERNAL_FAILURE|INTERNAL_ERROR|SLOW_DOWN|SERVICE_UNAVAILABLE|REQUEST_TIMEOUT|THROTTLING"
    r"|HTTP status (408|429|5\d\d)|curlCode|ServerBusy|Service Unavailable|Internal Server Error"
    r"|connection (reset|broke)|broken pipe|timed? ?out|temporarily|deadline exceeded|UNAVAILABLE",
    re.IGNORECASE,
)
"""In what pyarrow's file systems say."""


class Retries:
    """How often a request is sent again, and when.

    Args:
        most: The most times that it is sent again, within a minute.
        sleep: Waits for a number of seconds.
        monotonic: The clock, in seconds.
        chance: Gives a number between 0 and 1.
    """

    def __init__(
        self,
        most: int = 5,
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.most = most
        self.sleep, self.monotonic, self.chance = sleep, monotonic, chance

    def __reduce__(self) -> tuple[object, ...]:
        return Retries, (self.most,)

    def attempts(self) -> Iterator[int]:
        """Numbers from 1, with a wait before each but the first; ends when retries or time are used up."""
        begun = self.monotonic()
        yield 1
        for number in range(self.most):
            wait = min(_MIN_WAIT_SECONDS * 2**number, _MAX_WAIT_SECONDS) * (1 - self.chance() / 2)
            if self.monotonic() - begun + wait > _DEADLINE_SECONDS:
                return
            self.sleep(wait)
            yield number + 2

    def run(self, action: Callable[[], T]) -> T:
        """The result of an action that does no harm if it is repeated; raises its last error."""
        failure: OSError | None = None
        for _ in self.attempts():
            try:
                return action()
            except OSError as error:
                if not is_transient(error):
                    raise
                failure = error
        assert failure is not None
        raise failure


def is_transient(error: BaseException) -> bool:
    """Whether an error of pyarrow's file systems says that the same request may succeed later."""
    return isinstance(error, OSError) and error.errno is None and _TRANSIENT.search(str(error)) is not None
