"""Compiled: how the kernels are compiled, and where the machine code is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from numba import njit

__all__ = ["FAST", "jit"]

FAST = {"contract", "reassoc", "nsz", "arcp"}  # sums may be reordered, products and sums fused


def jit(
    *, fastmath: set[str] | Literal[False] = False, inline: Literal["never", "always"] = "never"
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a kernel, lets other threads run, and keeps the code for later processes.

    numba keeps it in NUMBA_CACHE_DIR, beside the source, or in the home folder. Where none of them can be written, as
    in a container with a read-only disk, it is compiled anew in each process; set NUMBA_CACHE_DIR to avoid that.
    """
    options: dict[str, Any] = {"nogil": True, "inline": inline, "fastmath": fastmath}

    def decorate(kernel: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(kernel)
        except RuntimeError:  # numba's "cannot cache function: no locator available"
            return njit(**options)(kernel)

    return decorate
