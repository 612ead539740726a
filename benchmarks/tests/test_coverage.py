"""Figures of the coverage benchmark from made-up outcomes."""

import numpy as np
import pytest

from benchmarks.clips import Case, Outcome
from benchmarks.coverage import DOUBTFUL, HOPELESS, figures_of, half_width_over_deviation
from benchmarks.pool import map_in_processes
from rssc.datasets.golden import PARAMETERS


def outcome(z, scale=1.0, status="ok", **case):
    return Outcome(
        Case(**case), status, direction="top_to_bottom",
        errors=dict.fromkeys(PARAMETERS, z * scale), sigmas=dict.fromkeys(PARAMETERS, scale),
        notes=("a global shutter",),
    )  # fmt: skip


def outcomes(good):
    others = {kind: [outcome(9.0, status="weak")] for kind in (*HOPELESS, *DOUBTFUL)}
    return {"good": good, "global": [outcome(0.0, readout=0.0)], **others}


def test_half_widths_are_of_each_clip_in_its_own_sigmas():
    """A single clip with bars a thousand times wider does not change the figure."""
    z = np.tile([1.0, -1.0, 2.0, 0.5, 1.0], (10, 1))
    assert half_width_over_deviation(z) == pytest.approx(
        dict(zip(PARAMETERS, (1.96, 1.96, 0.98, 3.92, 1.96), strict=True))
    )
    good = [outcome(1.0)] * 9 + [outcome(1.0, scale=1000.0)]
    assert figures_of(outcomes(good))["half_width_over_deviation"]["fx"] == pytest.approx(1.96)


def test_a_group_whose_bars_do_not_hold_is_found():
    good = [outcome(1.0, motion="shaky")] * 20 + [outcome(2.5, motion="hand_held")] * 6
    good += [outcome(1.0, motion="hand_held")] * 6
    figures = figures_of(outcomes(good))
    assert figures["coverage_95"]["fx"] == pytest.approx(26 / 32)
    assert figures["least_group_coverage"] == pytest.approx(0.5)
    assert figures["largest_z"] == pytest.approx(2.5)
    assert (figures["flagged_degenerate"], figures["flagged_good"]) == (1.0, 0.0)


def test_flagged_clips_count_only_as_flagged():
    figures = figures_of(outcomes([outcome(1.0)] * 9 + [outcome(7.0, status="weak")]))
    assert figures["largest_z"] == pytest.approx(1.0)
    assert figures["flagged_good"] == pytest.approx(0.1)


def test_processes_keep_the_order():
    assert list(map_in_processes(abs, [-3, 2, -1], jobs=2)) == [3, 2, 1]
