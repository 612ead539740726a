"""2D tracks without the rolling shutter, in the text format of 3DEqualizer that match-movers read.

A track is where a point was seen, row by row at different times. Here it is where a global shutter would have seen it
when one row was read: the measured ray goes as far as the point is, and is looked at from the pose of that row. What
was measured stays measured, with its noise and its lens distortion.

The format (https://github.com/david-cattermole/mayaMatchMoveSolver, loadmarker/lib/formats/tdetxt.py) counts frames
from 1 and pixels from the lower left corner of the picture, y upwards; it has no comments.
"""

import numpy as np

from rssc.model.arrays import FloatArray
from rssc.model.poses import transform_points
from rssc.outputs.exporters.exporter import HALF_PIXEL, Export, Exporter, Files

_COLOUR = 0


def global_pixels(export: Export, row: float) -> FloatArray:
    """(m, 2) the tracks' pixels as a global shutter has them when a row is read; NaN where it sees nothing."""
    scene = export.frames.scene
    tracks, lens = scene.tracks, scene.camera.lens
    read = export.trajectory.cam_from_world(scene.row_times(tracks.pixels, tracks.frames))
    local = transform_points(read, scene.points[tracks.points])
    local = lens.unproject(tracks.pixels) * np.linalg.norm(local, axis=1, keepdims=True)
    world = np.einsum("nji,nj->ni", read[:, :, :3], local - read[:, :, 3])
    return lens.project(transform_points(export.row_poses(row)[tracks.frames], world))


def _tracks(export: Export) -> Files:
    tracks, numbers = export.frames.scene.tracks, export.frames.frame_numbers + 1
    pixels = global_pixels(export, export.chosen_row)
    x, y = pixels[:, 0] + HALF_PIXEL, export.camera.height - HALF_PIXEL - pixels[:, 1]
    lines: list[str] = []
    count = 0
    seen = np.isfinite(pixels[:, 0])
    for point, (begin, end) in enumerate(zip(tracks.offsets[:-1], tracks.offsets[1:], strict=True)):
        here = np.flatnonzero(seen[begin:end]) + begin
        if len(here) == 0:
            continue
        count += 1
        lines += [f"rssc_{point:06d}", str(_COLOUR), str(len(here))]
        lines += [f"{numbers[tracks.frames[i]]} {x[i]:.6f} {y[i]:.6f}" for i in here]
    return {"tracks.txt": "\n".join([str(count), *lines, ""]).encode()}


TRACKS = Exporter(
    units="pixels; frames count from 1, frame 0 of the source is 1",
    span="H line delays: from the first row to one past the last; taken out of the tracks",
    reference_row="what a global shutter sees when one row is read, by default the middle one, (H - 1) / 2 counted "
    "from 0; lens distortion stays",
    pixel_centre="(0.5, H - 0.5) is the centre of the top-left pixel: from the lower left corner, y upwards",
    files=_tracks,
    has_poses=True,
    has_row_times=False,
    has_row_choice=True,
    has_statement=False,
)
