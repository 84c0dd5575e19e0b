"""Compute: a record cut into parts, read on one core, many or a cluster, with a file of the parts that are done."""

from doublewell.compute.checkpoint import Ledger, fingerprint
from doublewell.compute.partition import (
    Region,
    check_room,
    even_steps,
    interface_share,
    make_tiles,
    most_common,
    parse_memory,
    shown_bytes,
    tile_memory,
    tile_name,
    tile_record,
    tile_shape,
    whole_bytes,
    window_copies,
)
from doublewell.compute.run import Clock, Pool, open_pool, worker_pool

__all__ = [
    "Clock",
    "Ledger",
    "Pool",
    "Region",
    "check_room",
    "even_steps",
    "fingerprint",
    "interface_share",
    "make_tiles",
    "most_common",
    "open_pool",
    "parse_memory",
    "shown_bytes",
    "tile_memory",
    "tile_name",
    "tile_record",
    "tile_shape",
    "whole_bytes",
    "window_copies",
    "worker_pool",
]
