"""Stream: weak moments of records larger than memory, slab by slab, on one core, many, or a cluster."""

from doublewell.stream.executors import Pool, open_pool
from doublewell.stream.memory import parse_memory, shown_bytes
from doublewell.stream.plan import make_plan
from doublewell.stream.stream import Stream, Streamed, open_stream

__all__ = [
    "Pool",
    "Stream",
    "Streamed",
    "make_plan",
    "open_pool",
    "open_stream",
    "parse_memory",
    "shown_bytes",
]
