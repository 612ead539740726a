"""COLMAP's own pipeline, to compare with: SIFT, sequential matching, incremental mapping, one shared camera.

Nothing of it enters a calibration. COLMAP keeps the principal point in the image's centre while it maps, because it is
weakly determined then; where it is wanted, all parameters are adjusted together at the end, as COLMAP's documentation
advises.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rssc.errors import NotCalibratableError
from rssc.model.arrays import FloatArray
from rssc.model.lens import LENS_MODELS, Lens
from rssc.runtime.progress import Report, unreported
from rssc.runtime.temporary import temporary_folder
from rssc.start.colmap import SEED, lens_from_colmap, quiet_pycolmap

COLMAP_MODELS = {model.name: model.colmap.name for model in LENS_MODELS.values()} | {"radial": "RADIAL"}
"""COLMAP's name of each of our lens models."""

_MATCHED = 0.5  # of the progress
_WIDE_FOCAL = 0.5  # of the larger side


@dataclass(frozen=True)
class ColmapResult:
    """What COLMAP finds by itself."""

    lens: Lens
    cam_from_world: dict[str, FloatArray]
    """Name of an image to its (3, 4) pose, for the images that were registered."""


def run_colmap(
    folder: Path,
    names: Sequence[str] = (),
    *,
    camera_model: str = "SIMPLE_RADIAL",
    refine_principal_point: bool = False,
    report: Report = unreported,
) -> ColmapResult:
    """Runs COLMAP on images.

    Args:
        folder: With the images.
        names: Of the images to take; all where empty.
        camera_model: COLMAP's name of the camera model that all images share.
        refine_principal_point: Adjust the principal point, too, once all images are in place.
        report: Called with the share of the work that is done.

    Raises:
        NotCalibratableError: COLMAP finds no model.
    """
    colmap = quiet_pycolmap()
    with temporary_folder() as work:
        database = work / "database.db"
        colmap.extract_features(
            database, folder, image_names=list(names), camera_mode=colmap.CameraMode.SINGLE,
            reader_options=colmap.ImageReaderOptions(camera_model=camera_model),
        )  # fmt: skip
        report(_MATCHED / 2)
        colmap.match_sequential(database)
        report(_MATCHED)
        options = colmap.IncrementalPipelineOptions(random_seed=SEED)
        placed, count = [2], max(len(names), 3)

        def next_image() -> None:
            placed[0] += 1
            report(min(1.0, _MATCHED + (1 - _MATCHED) * placed[0] / count))

        models = colmap.incremental_mapping(database, folder, work, options, next_image_callback=next_image)
        if not models:
            # It begins with a focal length of 1.2 times the larger side, which no fisheye has, and takes it for so
            # uncertain that pairs are verified without any lens.
            quiet_pycolmap()  # mapping switches its log on again
            _guess_focal(colmap, database, _WIDE_FOCAL)
            colmap.geometric_verification(database)
            models = colmap.incremental_mapping(database, folder, work, options, next_image_callback=next_image)
    if not models:
        raise NotCalibratableError("COLMAP finds no model of these frames.")
    best = max(models.values(), key=lambda model: (model.num_reg_images(), model.num_points3D()))
    if refine_principal_point:
        quiet_pycolmap()
        colmap.bundle_adjustment(best, colmap.BundleAdjustmentOptions(refine_principal_point=True, print_summary=False))
    camera = next(iter(best.cameras.values()))
    poses = {image.name: np.array(image.cam_from_world().matrix()) for image in best.images.values() if image.has_pose}
    return ColmapResult(lens_from_colmap(camera.model_name, camera.params), poses)


def _guess_focal(colmap: Any, database: Path, share: float) -> None:
    """Lets verification and mapping begin with a focal length that is trusted, a share of the larger side."""
    opened = colmap.Database.open(str(database))
    for camera in opened.read_all_cameras():
        focal = share * max(camera.width, camera.height)
        size = (camera.width, camera.height)
        guess = colmap.Camera.create_from_model_name(camera.camera_id, camera.model_name, focal, *size)
        guess.has_prior_focal_length = True
        opened.update_camera(guess)
    opened.clear_two_view_geometries()
    opened.close()
