"""The paper's simulation figure: three columns for the factors, five rows for the parameters, a line per method."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from rssc.experiments.results import PARAMETERS, Condition, Row
from rssc.io.files import partial_name
from rssc.runtime.extras import import_extra

_LABELS = {
    "trajectory_noise_hz": "trajectory noise cut-off [Hz]",
    "readout_ratio": "readout ratio",
    "pixel_noise": "pixel noise [px]",
}
_PARAMETER_LABELS = {
    "fx": "fx [px]", "fy": "fy [px]", "cx": "cx [px]", "cy": "cy [px]", "readout_ratio": "readout ratio",
}  # fmt: skip
_STYLES = {
    "te": ("tab:blue", "o"), "ceq": ("tab:orange", "^"), "ceh": ("tab:red", "v"), "dpq": ("tab:green", "s"),
    "dph": ("tab:olive", "D"), "auto": ("tab:purple", "*"),
}  # fmt: skip
_MEDIAN_OF_NORMAL = 0.67449  # the median of |x| for a standard normal x


def draw_figure(rows: Sequence[Row], factors: Mapping[str, Sequence[Condition]], path: Path) -> None:
    """Draws median absolute errors over trials, with what an estimator at the Cramer-Rao bound would have.

    Args:
        rows: Of the study.
        factors: The conditions along each factor.
        path: Its suffix (.svg, .png, .pdf) is the format.
    """
    matplotlib = import_extra("matplotlib", "the figure")
    matplotlib.use("Agg")
    pyplot = import_extra("matplotlib.pyplot", "the figure")
    methods = list(dict.fromkeys(row.method for row in rows))
    figure, axes = pyplot.subplots(
        len(PARAMETERS), len(factors), figsize=(3.6 * len(factors), 2.3 * len(PARAMETERS)), sharey="row", squeeze=False
    )
    for column, (factor, conditions) in enumerate(factors.items()):
        values = [getattr(condition, factor) for condition in conditions]
        for index, parameter in enumerate(PARAMETERS):
            axis = axes[index, column]
            for method in methods:
                colour, marker = _STYLES[method]
                medians = [_median_error(rows, condition, method, index) for condition in conditions]
                axis.plot(values, medians, color=colour, marker=marker, label=method, linewidth=1.2, markersize=5)
            bounds = [_MEDIAN_OF_NORMAL * _median_bound(rows, condition, index) for condition in conditions]
            axis.plot(values, bounds, color="black", linestyle="--", label="Cramer-Rao bound", linewidth=1.2)
            axis.set_yscale("log")
            axis.set_xticks(values)
            axis.grid(True, which="both", alpha=0.25)
            if column == 0:
                axis.set_ylabel(_PARAMETER_LABELS[parameter])
            if index == len(PARAMETERS) - 1:
                axis.set_xlabel(_LABELS[factor])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), frameon=False)
    figure.supylabel("median absolute error", x=0.005)
    figure.tight_layout(rect=(0.015, 0, 1, 0.975))
    partial = partial_name(path)
    figure.savefig(partial, format=path.suffix[1:], dpi=120)
    partial.replace(path)
    pyplot.close(figure)


def _median_error(rows: Sequence[Row], condition: Condition, method: str, parameter: int) -> float:
    return _median([r.errors[parameter] for r in rows if r.condition == condition and r.method == method])


def _median_bound(rows: Sequence[Row], condition: Condition, parameter: int) -> float:
    return _median([r.bounds[parameter] for r in rows if r.condition == condition])


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else float("nan")
