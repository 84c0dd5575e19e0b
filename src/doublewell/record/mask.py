"""Mask: which values of a record were observed, brought to the axes of the field; a stored one is read slab by slab."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.record.frames import Frames, time_axis

__all__ = ["Cells", "Seen", "check_mask", "clip_mask", "masked_array", "missing_share", "named_axes", "seen_values"]

Seen = NDArray[np.bool_]
Cells = tuple[tuple[int, int], ...]  # along each space axis (first, past the last)


def check_mask(mask: Any, shape: tuple[int, ...]) -> Any:
    """Return a mask on the axes of the field, each of full length or 1, or None where there is none.

    Taken are the shape of a frame (the same in all frames), (frames,) for dropped frames, and as many axes as the field
    has, each of full length or 1. Only a mask of the full length in time and space stays where it is stored.
    """
    if mask is None:
        return None
    values = mask if hasattr(mask, "shape") and hasattr(mask, "dtype") else _listed(mask, shape)
    if np.dtype(values.dtype).kind != "b":
        raise InputError(
            f"mask has type {values.dtype}: expected truth values, True where a value was observed; pass "
            "mask.astype(bool), or ~mask where True marks what is missing"
        )
    values = _on_axes(values, tuple(int(n) for n in values.shape), shape)
    if isinstance(values, np.ndarray):
        if not values.any():
            raise InputError("mask is False everywhere: expected True where a value was observed; pass ~mask, or none")
        values = values.view()
        values.flags.writeable = False
    return values


def masked_array(u: Any, mask: Any) -> tuple[Any, Any]:
    """Split a NumPy masked array into its numbers and a mask of what was observed; others pass as they are."""
    if not isinstance(u, np.ma.MaskedArray):
        return u, mask
    if not np.ma.is_masked(u):
        return u.data, mask
    if mask is not None:
        raise InputError(
            "the field is a masked array and mask= is given too: expected one of them; pass u.data and "
            "mask=~np.ma.getmaskarray(u) & mask"
        )
    return u.data, ~np.ma.getmaskarray(u)


def named_axes(mask: Any, field: Any) -> Any:
    """Bring a mask to the axes of an xarray field with time first: by name, or in the field's own order.

    Axes that a named mask has not get the length 1.
    """
    if mask is None or field.ndim < 2 or not hasattr(mask, "shape"):
        return mask
    if not hasattr(mask, "dims"):
        if len(mask.shape) != field.ndim or time_axis(field.dims) == 0:
            return mask
        mask = type(field)(mask, dims=field.dims)
    unknown = [str(name) for name in mask.dims if name not in field.dims]
    if unknown:
        names = ", ".join(str(name) for name in field.dims)
        raise InputError(f"mask has an axis {unknown[0]!r}: expected axes of the field ({names}); rename it")
    whole = mask.expand_dims([name for name in field.dims if name not in mask.dims])
    return whole.transpose(*field.dims).transpose(field.dims[time_axis(field.dims)], ...)


def seen_values(mask: Any, start: int, stop: int, cells: Cells, *, whole: bool) -> Seen:
    """Read which values of the frames start..stop-1 were observed; a read-only array, broadcast where it can be.

    `cells` are those that are read; where they are the `whole` mesh a stored mask is asked for frames only.
    """
    shape = (stop - start, *(high - low for low, high in cells))
    if mask is None:
        return np.broadcast_to(np.True_, shape)
    frames = slice(None) if mask.shape[0] == 1 else slice(start, stop)
    space = (slice(None) if n == 1 else slice(*pair) for n, pair in zip(mask.shape[1:], cells, strict=True))
    return np.broadcast_to(np.asarray(mask[frames] if whole else mask[(frames, *space)], dtype=bool), shape)


def clip_mask(mask: Any, start: int, stop: int) -> Any:
    """Return the mask of the frames start..stop-1, without reading it."""
    if mask is None or mask.shape[0] == 1:
        return mask
    return mask[start:stop] if isinstance(mask, np.ndarray) else Frames(mask, start, stop)


def missing_share(mask: Any) -> float | None:
    """Return the share of values that are missing; None where that is not known without reading a file."""
    return float(1.0 - np.mean(mask)) if isinstance(mask, np.ndarray) else None


def _listed(mask: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        return np.asarray(mask)
    except ValueError:
        raise InputError(f"mask is a ragged list: expected {_expected(shape)}") from None


def _on_axes(values: Any, given: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return the mask with one axis for each of the field's; small masks are read."""
    frames, mesh = shape[0], shape[1:]
    if given == mesh == (frames,):
        raise InputError(
            f"mask has shape {given}, and the record has as many frames as cells: expected mask[:, None] for dropped "
            "frames or mask[None, :] for missing cells"
        )
    if given == shape and not isinstance(values, np.ndarray):
        return values if not hasattr(values, "dims") else _unnamed(values)
    if given == mesh:
        target = (1, *mesh)
    elif given == (frames,):
        target = (frames, *(1 for _ in mesh))
    elif len(given) == len(shape) and all(n in (1, m) for n, m in zip(given, shape, strict=True)):
        target = given
    else:
        raise InputError(f"mask has shape {given}: expected {_expected(shape)}; True where a value was observed")
    return np.array(values[:], dtype=bool).reshape(target) if given != shape else values


def _unnamed(values: Any) -> Any:
    """Take the stored array of an xarray mask; a file opened without dask stays unread."""
    return Frames(values, 0, values.shape[0]) if values.chunks is None else values.data


def _expected(shape: tuple[int, ...]) -> str:
    return f"{shape[1:]} (fixed in time), {(shape[0],)} (dropped frames) or {shape} (each value)"
