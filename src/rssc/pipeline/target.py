"""The whole flow with a calibration target: from a video of a board to a calibration in metres.

read -> find the board -> place it (global shutter) -> infer (rolling shutter, points fixed) -> check the board

Spline, solver and choices are the same as without a target, but the points are known. Where the board turns out to
differ from its description, the points are estimated, too, and the target only provides scale and axes.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.footage.footage import Footage, read_footage, survey_footage
from rssc.inference.board_check import BoardCheck, check_board, lay_on_board
from rssc.inference.infer import Inference, infer
from rssc.io.lens_files import read_sensor_lens
from rssc.io.target_file import read_target
from rssc.model.calibration import Calibration, Statistics
from rssc.model.camera import Camera, Shutter
from rssc.model.lens import Lens
from rssc.model.scene import Scene
from rssc.model.stretch import Stretch
from rssc.model.target import AprilGrid, Target
from rssc.model.tracks import Tracks
from rssc.pipeline.bars import in_whole_image
from rssc.pipeline.metadata import compare_with_file, file_findings
from rssc.pipeline.options import TargetOptions
from rssc.pipeline.provenance import records_of, with_provenance
from rssc.pipeline.result import UNDISTORTED_NOTE, degenerate_result
from rssc.pipeline.starts import on_sensor
from rssc.pipeline.verdict import judge_inference
from rssc.runtime.constants import Constants
from rssc.runtime.progress import Progress, Stages, silent
from rssc.solver.options import AdjustOptions
from rssc.solver.problem import readout_interval
from rssc.solver.spline_fit import fit_trajectory
from rssc.start.board import BOARD_START, start_from_target
from rssc.start.start import Start
from rssc.tracking.board_corners import detect_target


@dataclass(frozen=True)
class TargetConstants(Constants):
    """Calibration with a board."""

    worse_noise: float = 1.5
    """Noise with fixed points over noise with free points, above which a board is not as described. Chosen by hand."""
    poor_noise_px: float = 0.5
    """Noise above which corners count as poor. Chosen by hand."""
    wrong_board: float = 0.02
    """Shift of the corners over the side of a tag or square, above which the description is doubted. Chosen by hand."""
    lost_focal: float = 0.01
    """Relative sigma of the focal length above which free points are not used, as for a weak verdict."""


TARGET = TargetConstants()

_SAID = ("bars", "interlacing")


def calibrate_target(
    source: Path | str,
    target: Target | str,
    options: TargetOptions | None = None,
    progress: Progress = silent,
) -> Calibration:
    """Calibrates the camera that filmed a calibration target.

    Args:
        source: A video file, or a folder of images.
        target: The board, or how `rssc.io.target_file.read_target` names it.
        options: How to read the source, and what is known of its lens.
        progress: Called with the name of the stage and the share of it that is done.
    """
    options = options or TargetOptions()
    board = read_target(target) if isinstance(target, str) else target
    stage = Stages(progress)
    with stage("reading") as report:
        seen = survey_footage(source, fps=options.fps, bars=options.undistorted_from is None)
        records = records_of([Path(source)])
        # A board is found in each frame by itself, and frames without it are left out: cuts do no harm.
        survey = replace(seen, findings=tuple(one for one in seen.findings if one.cause in _SAID))
        footage = read_footage(source, fps=options.fps, frames=options.frames, survey=survey, report=report)
    sensor = read_sensor_lens(options.undistorted_from, footage.width, footage.height)
    try:
        found = _calibrate_board(source, footage, board, options.lens, sensor, stage)
    except NotCalibratableError as error:
        found = degenerate_result(footage, error)
    return with_provenance(found, records, options, target=target if isinstance(target, str) else board.kind)


def _calibrate_board(
    source: Path | str, footage: Footage, board: Target, lens: str, sensor: Lens | None, stage: Stages
) -> Calibration:
    with stage("finding the board") as report:
        tracks = detect_target(footage.images, board, report)
        if tracks is None:
            raise NotCalibratableError(
                f"no frame shows this {board.kind}; check its rows, columns and dictionary, and film it large, sharp "
                f"and evenly lit."
            )
        footage, tracks = _where_seen(footage, on_sensor(tracks, sensor))
    with stage("placing the board"):
        start = start_from_target(tracks, board.points, footage.width, footage.height, lens)
        scene = _start_scene(footage, tracks, board, start, sensor)
    with stage("estimating") as report:
        final = infer(scene, lens=lens, common=AdjustOptions(fixed=("points",)), report=report)
    with stage("checking the board"):
        check = check_board(final.adjustment)
        released = _released(final, check)
    return _calibration(source, board, footage, released or final, check, released is not None, stage.seconds)


def _released(held: Inference, check: BoardCheck) -> Inference | None:
    """The inference with free points, where they fit much better and constrain the focal length; None otherwise."""
    if check.held_noise < TARGET.worse_noise * check.free_noise:
        return None
    board = held.adjustment.scene
    try:
        free = infer(board, lens=board.camera.lens.model, rough=False)
    except NotCalibratableError:
        return None
    if not free.covariance.sigma("fx") < TARGET.lost_focal * free.adjustment.scene.camera.lens.fx:
        return None
    return replace(free, adjustment=replace(free.adjustment, scene=lay_on_board(free.adjustment.scene, board)))


def _where_seen(footage: Footage, tracks: Tracks) -> tuple[Footage, Tracks]:
    """Footage and tracks from the first frame that shows the board to the last."""
    seen = np.flatnonzero(np.bincount(tracks.frames, minlength=len(footage)) >= BOARD_START.min_corners)
    if len(seen) == 0:
        return footage, tracks
    first, last = int(seen[0]), int(seen[-1]) + 1
    part = slice(first, last)
    keep = (tracks.frames >= first) & (tracks.frames < last)
    return (
        replace(footage, images=footage.images[part], times_s=footage.times_s[part],
                frame_numbers=footage.frame_numbers[part], names=footage.names[part], candidates=()),
        Tracks(last - first, tracks.point_count, tracks.frames[keep] - first, tracks.points[keep], tracks.pixels[keep]),
    )  # fmt: skip


def _start_scene(footage: Footage, tracks: Tracks, target: Target, start: Start, sensor: Lens | None) -> Scene:
    """A scene with a spline through the poses of the frames that show the board."""
    camera = Camera(footage.width, footage.height, start.lens, Shutter(0.0), sensor)
    times = footage.frame_times
    begin, end = readout_interval(times, 0.0)
    trajectory = fit_trajectory(times[start.registered], start.cam_from_world[start.registered], begin, end, 1.0)
    return Scene(camera, tracks, target.points, trajectory.cam_from_world(times), times, trajectory)


def _calibration(
    source: Path | str,
    target: Target,
    footage: Footage,
    final: Inference,
    check: BoardCheck,
    released: bool,
    seconds: dict[str, float],
) -> Calibration:
    adjustment = final.adjustment
    scene = adjustment.scene
    seen = np.bincount(scene.tracks.frames, minlength=len(footage)) >= BOARD_START.min_corners
    status, reasons = judge_inference(final, seen, board=True)
    wrong = _wrong_with_board(target, check, released)
    said = file_findings(footage.metadata)
    notes = [
        f"the {target.kind} is seen in {int(seen.sum())} of {len(footage)} frames; world coordinates are those of the "
        "board, in metres."
    ]
    if scene.camera.undistorted_from is not None:
        notes.append(UNDISTORTED_NOTE)
    if released:
        notes.append(
            f"its corners were estimated, too: they lie {1e3 * check.shift:.2f} mm (root mean square) from their "
            f"described places; the target only provides scale and axes."
        )
    calibration = Calibration(
        camera=scene.camera,
        frame_interval_s=footage.frame_interval_s,
        parameters=final.covariance.parameters,
        covariance=final.covariance.finite().matrix,
        status="weak" if (said or wrong) and status == "ok" else status,
        reasons=(*(one.reason for one in said), *reasons, *wrong),
        method="te",
        knot_spacing=float(adjustment.options.knot_spacing),
        statistics=Statistics(
            frames=len(footage),
            points=scene.tracks.point_count,
            observations=len(scene.tracks),
            rms_px=adjustment.rms,
            iterations=len(adjustment.summary.iterations),
            cost_by_iteration=tuple(iteration.cost for iteration in adjustment.summary.iterations),
            seconds={name: round(value, 3) for name, value in seconds.items()},
        ),
        notes=(*footage.notes, *notes),
        stretches=(Stretch(scene, footage.times_s, footage.frame_numbers, footage.names, str(source)),),
        metadata=footage.metadata,
    )
    calibration = in_whole_image(calibration, footage.cropped)
    return replace(calibration, notes=(*calibration.notes, *compare_with_file(calibration)))


def _wrong_with_board(target: Target, check: BoardCheck, released: bool) -> tuple[str, ...]:
    """Reasons to doubt the description of the board or its images."""
    side = target.tag_size if isinstance(target, AprilGrid) else target.points[1, 0]
    worse = check.held_noise > TARGET.worse_noise * check.free_noise
    if worse and (check.shift > TARGET.wrong_board * side or not released):
        return (f"the board is not as described: estimated freely, its corners move by {1e3 * check.shift:.1f} mm"
                f"{_guess(target, check)}; measure it again, and keep it flat",)  # fmt: skip
    if check.held_noise > TARGET.poor_noise_px:
        return (f"corners scatter by {check.held_noise:.2f} pixels: film the board sharp and evenly lit",)
    return ()


def _guess(target: Target, check: BoardCheck) -> str:
    """A hint at the spacing that the free corners of an AprilGrid have."""
    if not isinstance(target, AprilGrid) or len(check.points) < len(target.points):
        return ""
    grid = check.points[:, :2].reshape(2 * target.rows, 2 * target.columns, 2)
    steps = [np.linalg.norm(np.diff(grid, axis=axis), axis=2) for axis in (0, 1)]
    tags = np.concatenate((steps[0][::2].ravel(), steps[1][:, ::2].ravel())).mean()
    gaps = np.concatenate((steps[0][1::2].ravel(), steps[1][:, 1::2].ravel()))
    return f" (as if tagSpacing were {gaps.mean() / tags:.3f}, not {target.spacing:g})" if len(gaps) else ""
