"""Stop: why the work on an answer ends early, and what becomes of it: a time limit, Ctrl-C, or a caller that cancels.

Work is cut into numbered steps: one of Gauss-Newton, or a piece that an answer can do without. Whether the time is over
is asked before each of them, and between the compiled programs of a piece. The number of the step that was not made is
stored, and gives the same answer again without a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

from doublewell.errors import Interrupted

_Out = TypeVar("_Out")


class Stop:
    """When to stop: after some seconds, before the step of a number, or when `cancel` returns true.

    ``at`` is the number of the step before which it was over, None while it is not. ``by_hand`` is whether Ctrl-C or
    the caller ended it.
    """

    def __init__(
        self, seconds: float | None = None, step: int | None = None, cancel: Callable[[], bool] | None = None
    ) -> None:
        self._deadline = None if seconds is None else monotonic() + seconds
        self._last, self._cancel = step, cancel
        self._step, self._finishes = 0, False
        self.at: int | None = None
        self.by_hand = False

    def over(self) -> bool:
        """Begin a step; return whether the time is over before it, or raise where what was begun is not finished."""
        self._step += 1
        if self.at is None and self._late():
            self.at = self._step
        if self.at is not None and not self._finishes:
            raise Interrupted
        return self.at is not None

    def check(self) -> None:
        """Raise between two programs where the time is over, unless what was begun is to be finished."""
        if not self._finishes and (self.at is not None or self._late()):
            raise Interrupted

    def attempt(self, work: Callable[[], _Out]) -> _Out | None:
        """Return what a piece of work gives; None where the time is over before it, or before it has ended."""
        step = self._step + 1
        try:
            self.over()
            return work()
        except KeyboardInterrupt as error:
            self.end(step, error)
            return None

    def end(self, step: int, reason: KeyboardInterrupt) -> None:
        """State that the time was over before a step; where nobody waits for what is left, raise again."""
        if self is _NEVER:
            raise reason
        self.at = step if self.at is None else min(self.at, step)
        self.by_hand |= not isinstance(reason, Interrupted)

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Finish in order what is begun in a block: nothing raises in it."""
        self._finishes = True
        try:
            yield
        finally:
            self._finishes = False

    def _late(self) -> bool:
        self.by_hand = self.by_hand or (self._cancel is not None and bool(self._cancel()))
        late = self._deadline is not None and monotonic() >= self._deadline
        return late or self.by_hand or (self._last is not None and self._step >= self._last)


_NEVER = Stop()
_CURRENT: ContextVar[Stop] = ContextVar("stop", default=_NEVER)


def current() -> Stop:
    """Return what may stop the work of this thread; nothing outside of ``stopping``.

    >>> current().over()
    False
    """
    return _CURRENT.get()


@contextmanager
def stopping(stop: Stop) -> Iterator[Stop]:
    """Let the work in a block be stopped; Ctrl-C outside of its steps raises Interrupted without a result."""
    token = _CURRENT.set(stop)
    try:
        yield stop
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        _CURRENT.reset(token)
