"""Which residuals are evaluated together, and by which thread.

A row's time, and with it the knots it lies between, depends on the readout ratio; all else about the order of residuals
is fixed with the problem. So a layout belongs to one readout ratio. A state and the trial that may follow it are
evaluated in turns: the last two layouts are kept.
"""

from dataclasses import dataclass

import numpy as np

from rssc.kernels.bundle.order import Order, sort_residuals
from rssc.kernels.bundle.residuals import RectifiedTable, SplineTable, State
from rssc.model.arrays import IntArray
from rssc.runtime.threads import balanced_chunks, run_chunks, thread_count
from rssc.solver.constants import SOLVER

_KEPT = 2


@dataclass(frozen=True, eq=False)
class Layout:
    """The order of residuals at one readout ratio."""

    readout_ratio: float
    order: Order
    chunks: list[tuple[int, int]]
    """Ranges of blocks, for threads that evaluate."""

    def block_work(self, work: IntArray) -> IntArray:
        """(b + 1,) work before each block, of (p,) work of each point."""
        before = np.concatenate([[0], np.cumsum(work[self.order.points])])
        return before[self.order.blocks]


class Layouts:
    """Layouts of one problem."""

    def __init__(self, spline: SplineTable, rectified: RectifiedTable, seen: IntArray) -> None:
        """Args:
        spline: Residuals of the spline.
        rectified: Rectified residuals.
        seen: (p, 2) first and last frame in which each point is seen: neighbours in time share spline intervals.
        """
        self._spline, self._rectified, self._seen = spline, rectified, seen
        count, first, last = len(seen), seen[:, 0], seen[:, 1]
        size = int(np.clip(-(-count // (2 * thread_count())), SOLVER.fewest_block_points, SOLVER.most_block_points))
        self._blocks = np.append(np.arange(0, count, size), count)
        points = np.argsort(first, kind="stable")
        # In a block the last to leave come first: then those that touch a pose are neighbours.
        self._points = points[np.lexsort((-last[points], np.arange(count) // size))]
        points = self._points
        per_point = np.diff(spline.offsets) + np.diff(rectified.offsets)
        self._offsets = np.concatenate([[0], np.cumsum(per_point[points])])[self._blocks]
        threads = min(thread_count(), 1 + int(self._offsets[-1]) // SOLVER.thread_residuals)
        self._chunks = balanced_chunks(self._offsets, threads)
        self._kept: list[Layout] = []

    def retimed(self, spline: SplineTable) -> "Layouts":
        """Layouts of the same residuals at other times."""
        return Layouts(spline, self._rectified, self._seen)

    def of(self, state: State) -> Layout:
        """The layout for the readout ratio of a state."""
        readout_ratio = float(state.parameters[-1]) if state.spacing > 0 else 0.0
        for layout in self._kept:
            if layout.readout_ratio == readout_ratio:
                return layout
        order = Order(
            self._points, self._blocks, self._offsets, *(np.empty(self._offsets[-1], np.int32) for _ in range(3))
        )

        def task(_: int, begin: int, end: int) -> None:
            sort_residuals(state, self._spline, self._rectified, begin, end, order)

        run_chunks(task, self._chunks)
        layout = Layout(readout_ratio, order, self._chunks)
        self._kept = [layout, *self._kept[: _KEPT - 1]]
        return layout
