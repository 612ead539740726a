"""Pictures within black bars: calibrated without the bars, reported as the image is given.

The rows of the bars were never read, and nothing is to be tracked there. So the frames are cropped to the picture,
whose camera is estimated. In the whole image its principal point and its tracks lie further down and to the right; its
lens, its poses, its error bars and its readout, which is that of the picture's rows, stay the same.
"""

from dataclasses import replace

import numpy as np

from rssc.footage.footage import Cropped
from rssc.model.calibration import Calibration, PartialEstimate
from rssc.model.camera import Camera
from rssc.model.scene import Scene
from rssc.start.start import Start


def in_whole_image(found: Calibration, cropped: Cropped | None) -> Calibration:
    """A calibration of the picture as that of the image with its bars."""
    if cropped is None:
        return found
    camera = camera_in_whole_image(found.camera, cropped)
    left, top = cropped.active.left, cropped.active.top

    def moved(one: PartialEstimate) -> PartialEstimate:
        return replace(one, cx=one.cx + left, cy=one.cy + top)

    budget = found.uncertainty
    notes = found.notes
    whole, _ = camera.over_whole_image()
    if whole.line_count != camera.line_count:
        line = camera.shutter.axis
        over_all_ms = 1e3 * abs(whole.shutter.readout_ratio) * found.frame_interval_s
        notes += (
            f"the readout of {1e3 * found.readout_time_s:.2f} ms is that of the {camera.line_count} {line} of the "
            f"picture; counted over all {whole.line_count} {line} of the image, as other tools do, it is "
            f"{over_all_ms:.2f} ms.",
        )
    return replace(
        found,
        camera=camera,
        notes=notes,
        uncertainty=replace(budget, windows=tuple(map(moved, budget.windows))),
        stretches=tuple(replace(one, scene=_scene_in_whole_image(one.scene, cropped)) for one in found.stretches),
    )


def camera_in_whole_image(camera: Camera, cropped: Cropped | None) -> Camera:
    """The camera of a picture as that of the image with its bars."""
    if cropped is None:
        return camera
    area = cropped.active
    lens = replace(camera.lens, cx=camera.lens.cx + area.left, cy=camera.lens.cy + area.top)
    return replace(camera, width=cropped.width, height=cropped.height, lens=lens, active=area)


def start_in_picture(start: Start, cropped: Cropped | None) -> Start:
    """A start from a model of the whole images as that of the picture within their bars."""
    if cropped is None:
        return start
    lens, area = start.lens, cropped.active
    return replace(start, lens=replace(lens, cx=lens.cx - area.left, cy=lens.cy - area.top))


def _scene_in_whole_image(scene: Scene, cropped: Cropped) -> Scene:
    area, tracks = cropped.active, scene.tracks
    return replace(
        scene,
        camera=camera_in_whole_image(scene.camera, cropped),
        tracks=replace(tracks, pixels=tracks.pixels + np.array([area.left, area.top])),
    )
