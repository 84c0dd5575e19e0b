"""Cluster: tasks on the workers of a Dask scheduler, through its Executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from doublewell.checks import shown
from doublewell.errors import InputError

__all__ = ["cluster_pool"]

_PATIENCE = "30s"  # for the scheduler to answer
_EXPECTED = 'expected the address of a Dask scheduler such as "tcp://10.0.0.1:8786", a dask.distributed.Client, or an '


def cluster_pool(scheduler: Any) -> tuple[Callable[[], AbstractContextManager[Executor]], Callable[[], int]]:
    """Return what makes an executor on a scheduler, and how many tasks to have under way there."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "a cluster needs Dask, which is not installed: run pip install 'doublewell[cluster]'"
        ) from None
    if not isinstance(scheduler, Client | str):
        raise InputError(f"scheduler is {shown(scheduler)}: {_EXPECTED}Executor")
    clients: list[Any] = []

    @contextmanager
    def make() -> Iterator[Executor]:
        client = _connect(scheduler) if isinstance(scheduler, str) else scheduler
        clients[:] = [client]
        try:
            yield client.get_executor(pure=False)
        finally:
            if isinstance(scheduler, str):
                client.close()

    return make, lambda: max(2, 2 * sum(clients[0].nthreads().values()))


def _connect(address: str) -> Any:
    from distributed import Client

    try:
        return Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({shown(error)}): {_EXPECTED}Executor; start one with "
            "dask scheduler"
        ) from error
