"""The boundary to COLMAP: cameras and models in our conventions.

pycolmap is imported here, and only when it is used, because the import is heavy: `epipolar`, `colmap_mapping` and the
experiments get it from `quiet_pycolmap`. Only the exporter of COLMAP models imports it, too.

COLMAP puts the centre of the top-left pixel at (0.5, 0.5), we put it at (0, 0). Whatever goes into COLMAP here gets
`HALF_PIXEL` added, and whatever comes out gets it taken off; `rssc.outputs.exporters.colmap` does the same for files.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rssc.errors import InputError
from rssc.model import LENS_MODELS, Lens
from rssc.model.arrays import FloatArray
from rssc.runtime.constants import Constants
from rssc.runtime.ending import handlers_kept

PycolmapObject = Any
"""A value of pycolmap, whose stubs leave out what its tables hold. None leaves the modules that name this type."""
SEED = 1
"""Of all random draws of COLMAP, so that every run gives the same result."""
HALF_PIXEL = 0.5
CAMERA_ID = 1


@dataclass(frozen=True)
class ColmapConstants(Constants):
    """Tuned numbers of what we ask of COLMAP, chosen by hand."""

    min_trials: int = 40
    """Least draws of a RANSAC: tracks of a video have few outliers."""
    max_trials: int = 120
    """Most draws of a RANSAC: bounds the time of pairs that nothing explains."""
    read_seconds: float = 15.0
    """Longest time to read a model, most of it for starting a process; 1 s here ..."""
    read_seconds_per_megabyte: float = 0.2
    """... and for its size."""
    focal_spread: float = 1.01
    """Focal lengths of a given model that differ by more than this factor are worth a note."""


COLMAP = ColmapConstants()
_PROBE = """
import sys
import pycolmap
if sys.platform != "win32":
    import resource
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30 if hard < 0 else min(hard, 8 << 30), hard))
pycolmap.logging.minloglevel = pycolmap.logging.FATAL.value
try:
    pycolmap.Reconstruction(sys.argv[1])
except Exception as error:
    sys.exit(str(error).splitlines()[0] if str(error) else "its files are damaged")
"""


@dataclass(frozen=True)
class ColmapModel:
    """A reconstruction in our conventions."""

    lens: Lens
    poses: dict[int, FloatArray]
    """Frame to its (3, 4) cam_from_world, for the frames that were registered."""
    points: FloatArray
    """(p, 3) positions of all points; NaN where not mapped."""


def quiet_pycolmap() -> ModuleType:
    """The module pycolmap, imported at the first use, with its log switched off."""
    with handlers_kept():
        import pycolmap

    # Set every time, because some of its functions reset the level.
    log = pycolmap.logging
    log.minloglevel = log.ERROR.value
    log.stderrthreshold = log.FATAL.value
    log.alsologtostderr = False
    for level in (log.INFO, log.WARNING, log.ERROR):
        log.set_log_destination(level, "")  # pyright: ignore[reportUnknownMemberType]
    return pycolmap


def _colmap_models() -> dict[str, tuple[str, tuple[int, ...]]]:
    """Our lens of each COLMAP model, and where fx, fy, cx, cy and its coefficients are in COLMAP's list."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    for model in LENS_MODELS.values():
        if model.colmap.coefficients == model.coefficients:
            found[model.colmap.name] = model.name, tuple(range(4 + len(model.coefficients)))
        found |= {name: (model.name, positions) for name, positions in model.colmap_shorter.items()}
    return found


_MODELS = _colmap_models()


def lens_from_colmap(model: str, parameters: ArrayLike) -> Lens:
    """Our lens of a COLMAP camera model and its parameters."""
    if model not in _MODELS:
        raise InputError(
            f"the COLMAP camera model is {model}; expected one of {', '.join(_MODELS)}. "
            "Run COLMAP again with one of these as its camera model."
        )
    name, positions = _MODELS[model]
    fx, fy, cx, cy, *distortion = np.asarray(parameters, dtype=float)[list(positions)]
    distortion += [0.0] * (len(LENS_MODELS[name].coefficients) - len(distortion))
    return Lens(name, fx, fy, cx - HALF_PIXEL, cy - HALF_PIXEL, tuple(distortion))


def camera_of(lens: Lens, width: int, height: int) -> PycolmapObject:
    """A COLMAP camera with one focal length and one distortion coefficient, which is all that a start can estimate."""
    colmap = quiet_pycolmap()
    model = "SIMPLE_RADIAL_FISHEYE" if lens.family == "fisheye" else "SIMPLE_RADIAL"
    first = lens.distortion[0] if lens.distortion else 0.0
    focal = float(np.sqrt(lens.fx * lens.fy))
    camera = colmap.Camera(
        camera_id=CAMERA_ID,
        model=model,
        width=width,
        height=height,
        params=[focal, lens.cx + HALF_PIXEL, lens.cy + HALF_PIXEL, first],
    )
    camera.has_prior_focal_length = True
    return camera


def ransac_options(max_error: float) -> PycolmapObject:
    """Options of a RANSAC whose inliers are within `max_error` pixels."""
    options = quiet_pycolmap().RANSACOptions()
    options.max_error = max_error
    options.random_seed = SEED
    options.min_num_trials, options.max_num_trials = COLMAP.min_trials, COLMAP.max_trials
    return options


def _check_complete(path: Path) -> None:
    """Reads a model in another process first: of damaged binary files pycolmap reads numbers without end.

    Raises:
        InputError: It ends with an error, or not at all.
    """
    # Programs that embed Python may be their own executable, and must not be started again.
    if not Path(sys.executable or "").name.lower().startswith("python"):
        return
    megabytes = 1e-6 * sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    limit_s = COLMAP.read_seconds + COLMAP.read_seconds_per_megabyte * megabytes
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"the COLMAP model in {path} cannot be read within {limit_s:.0f} s; its files are damaged."
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["its files are damaged"]
        raise InputError(f"the COLMAP model in {path} cannot be read: {said[-1]}")


def read_model(path: Path) -> tuple[Lens, dict[str, FloatArray], tuple[str, ...], tuple[int, int]]:
    """Lens, image name to (3, 4) cam_from_world, notes and image size of a COLMAP model in a folder, text or binary."""
    colmap = quiet_pycolmap()
    files = path.iterdir() if path.is_dir() else ()
    stems = {file.stem for file in files if file.suffix in (".bin", ".txt")}
    if not {"cameras", "images"} <= stems:
        raise InputError(
            f"{path} holds no COLMAP model; expected a folder with cameras, images and points3D as .bin or .txt."
        )
    _check_complete(path)
    try:
        reconstruction = colmap.Reconstruction(str(path))
    except (ValueError, RuntimeError, IndexError) as error:
        raise InputError(f"the COLMAP model in {path} cannot be read: {str(error).splitlines()[0]}") from error
    images = [image for image in reconstruction.images.values() if image.has_pose]
    cameras = [reconstruction.cameras[i] for i in sorted({image.camera_id for image in images})]
    kinds = {(camera.model_name, camera.width, camera.height) for camera in cameras}
    if len(kinds) != 1:
        raise InputError(
            f"the COLMAP model in {path} has {len(kinds)} kinds of cameras in use; expected the one that took the clip."
        )
    # By default COLMAP gives every image a camera of its own; the median stands for all of them.
    focals = [camera.mean_focal_length() for camera in cameras]
    notes = ()
    if max(focals) > COLMAP.focal_spread * min(focals):
        notes = (
            f"The COLMAP model has {len(cameras)} cameras with focal lengths from {min(focals):.0f} to "
            f"{max(focals):.0f} px for one clip; run COLMAP with one shared camera for a better start.",
        )
    lens = lens_from_colmap(cameras[0].model_name, np.median([camera.params for camera in cameras], axis=0))
    poses = {image.name: np.array(image.cam_from_world().matrix()) for image in images}
    return lens, poses, notes, (cameras[0].width, cameras[0].height)
