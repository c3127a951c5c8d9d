"""Whether indices point at the elements that a sort or a pick was asked for: looked up in the values it was given."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.picking import SORTING, Picking, WrongPick

Array = NDArray[Any]

ONCE: Final = (*SORTING, "topk")
"""Calls that pick no element twice."""


def find_wrong_pick(picking: Picking, source: Array, indices: Array, values: Array | None) -> WrongPick | None:
    """The first index that the values disprove; None where all are right, whatever the order of equal elements.

    source: what the call was given; values: what it put out beside the indices, if it did. Rows with NaN are left out, since
    libraries order NaN differently. Raises ValueError where the shapes do not belong to such a call.
    """
    rows = source.reshape(1, -1) if picking.dim is None else np.moveaxis(source, picking.dim, -1)
    size = rows.shape[-1]
    flat = np.asarray(rows.reshape(-1, size))
    folded = indices.ndim == source.ndim and picking.dim is not None
    moved = np.moveaxis(indices, picking.dim, -1) if folded and picking.dim is not None else indices
    picked_at = np.asarray(moved).reshape(len(flat), -1)
    if picked_at.shape[1] != picking.count:
        raise ValueError(f"{picked_at.shape[1]} indices a row for {picking.count}")

    def at(row: int, column: int) -> tuple[int, ...]:
        """The place in `indices`."""
        place = np.unravel_index(row * picking.count + column, moved.shape)
        order = list(map(int, place))
        if folded and picking.dim is not None:
            order.insert(picking.dim % source.ndim, order.pop())
        return tuple(order)

    def wrong(where: Array, reason: Any, expected: Array | None = None) -> WrongPick | None:
        places = np.argwhere(where)
        if not len(places):
            return None
        row, column = places[0].tolist()
        index = int(picked_at[row, column])
        inside = 0 <= index < size
        return WrongPick(
            reason=reason,
            at=at(row, column),
            index=index,
            picked=float(flat[row, index]) if inside else float("nan"),
            expected=float(expected[row, column]) if expected is not None else float("nan"),
        )

    outside = wrong((picked_at < 0) | (picked_at >= size), "outside")
    if outside is not None:
        return outside
    usual: Array = np.asarray(~np.isnan(flat.astype(np.float64)).any(axis=1))
    if picking.api in ONCE:
        order = np.argsort(picked_at, axis=1, kind="stable")
        follows = np.take_along_axis(picked_at, order, 1)
        again = np.zeros(picked_at.shape, bool)
        np.put_along_axis(again, order[:, 1:], follows[:, 1:] == follows[:, :-1], 1)
        repeated = wrong(again, "repeated")
        if repeated is not None:
            return repeated
    picked = np.take_along_axis(flat, picked_at, 1)
    ordered = np.sort(flat, axis=1)
    expected = ordered[:, ::-1][:, : picking.count] if picking.descending else ordered[:, : picking.count]
    found = picked
    if picking.api == "topk":  # it may put them out in any order
        found = np.sort(picked, axis=1)[:, ::-1] if picking.descending else np.sort(picked, axis=1)
        belongs = (found != expected) & usual[:, None]
        rows_off = belongs.any(axis=1)
        worst = expected[:, -1:] > picked if picking.descending else expected[:, -1:] < picked
        missed = wrong(worst & rows_off[:, None], "other", np.broadcast_to(expected[:, -1:], picked.shape))
        return missed or _other_value(wrong, values, picked, usual, picking, moved.shape)
    return wrong((found != expected) & usual[:, None], "other", expected) or _other_value(
        wrong, values, picked, usual, picking, moved.shape
    )


def _other_value(
    wrong: Any, values: Array | None, picked: Array, usual: Array, picking: Picking, shape: tuple[int, ...]
) -> WrongPick | None:
    """An index beside which another value was put out than the element that it names."""
    if values is None or values.size != picked.size:
        return None
    moved = np.moveaxis(values, picking.dim, -1) if values.ndim == len(shape) and picking.dim is not None else values
    flat = np.asarray(moved).reshape(picked.shape)
    found: WrongPick | None = wrong((flat != picked) & usual[:, None], "value", flat)
    return found
