"""Stream: records larger than memory, part by part, on one core, many, or a cluster."""

from doublewell.compute.checkpoint import Ledger
from doublewell.compute.executors import Pool, open_pool
from doublewell.compute.fingerprint import fingerprint
from doublewell.compute.memory import DEFAULT, parse_memory, shown_bytes
from doublewell.compute.plan import make_plan
from doublewell.compute.stream import Clock, Stream, Streamed, check_resources, open_stream
from doublewell.compute.tiling import (
    check_room,
    interface_share,
    make_tiles,
    most_common,
    tile_memory,
    tile_name,
    tile_record,
    tile_shape,
    whole_bytes,
    window_copies,
)

__all__ = [
    "DEFAULT",
    "Clock",
    "Ledger",
    "Pool",
    "Stream",
    "Streamed",
    "check_resources",
    "check_room",
    "fingerprint",
    "interface_share",
    "make_plan",
    "make_tiles",
    "most_common",
    "open_pool",
    "open_stream",
    "parse_memory",
    "shown_bytes",
    "tile_memory",
    "tile_name",
    "tile_record",
    "tile_shape",
    "whole_bytes",
    "window_copies",
]
