"""NVIDIA's NCore v4: frames as they were filmed, with a camera whose rows have poses of their own.

NCore, as gsplat, sees row v of a top-to-bottom sensor at t = v / (H - 1) between the start and the end of a frame, and
correspondingly in the other directions, and interpolates the camera's pose between both: spherically in rotation,
linearly in the translation of world to camera. A frame's start and end are therefore the times of the line that is read
first and of the one that is read last.

The camera does not move like that, so the two poses are not those of these two lines, but those from which the poses
of all lines follow best. Of an error s (1 - s) / 2, of constant acceleration, that leaves the part that no straight
line in s holds: its root mean square falls to sqrt((1/30 - 1/36) / (1/30)) = 0.41.

Its times are whole microseconds, not negative: nothing moves by as much as a thousandth of a pixel in half of one.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from rssc.errors import InputError
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.poses import camera_centres
from rssc.outputs.exporters.exporter import CENTRE_HALF, HALF_PIXEL, Export, Exporter, homogeneous, json_bytes

CAMERA_ID = "camera"
_INSTANCE = "default"
_MICROSECONDS = 1e6
_FITTED_LINES = 17
"""Of a frame, at which its two poses are fitted; more change nothing."""

NCORE = Exporter(
    units="pixels; microseconds; scene units",
    span="H - 1 line delays: from the line that is read first (a frame's start) to the one that is read last (its end)",
    reference_row="none: a frame has two poses, at its start and at its end",
    pixel_centre=CENTRE_HALF,
    files=lambda _: {},  # its own writer writes them
    has_poses=True,
)


def require_ncore() -> None:
    """Checks that NCore is there, before any work is done for it."""
    try:
        _loaded("ncore.data.v4")
    except ImportError as error:
        raise InputError(f"NCore's own writer is needed for this ({error}); pip install 'rssc[ncore]'.") from None


def _loaded(module: str) -> Any:
    """A module without its types: they are checked where NCore is not installed, too."""
    return import_module(module)


class NcoreWriter:
    """Writes a sequence of one camera, frame by frame."""

    def __init__(self, export: Export, folder: Path, name: str, kind: str) -> None:
        """Opens the stores.

        Args:
            export: The stretch.
            folder: Where the stores are written.
            name: Of the sequence, and so of its files.
            kind: Of the images: "png" or "jpg".
        """
        v4 = _loaded("ncore.data.v4")
        interval = _loaded("ncore.impl.common.transformations").HalfClosedInterval
        parameters = _camera(export)  # refuses what NCore cannot hold
        self._export, self._folder, self._name = export, folder, name
        self._kind = {"jpg": "jpeg"}.get(kind, kind)
        starts, ends = (_microseconds(export, end) for end in (0, 1))
        self._frames: NDArray[np.uint64] = np.stack([starts, ends], axis=1).astype(np.uint64)
        self._writer = v4.SequenceComponentGroupsWriter(
            output_dir_path=_loaded("upath").UPath(folder),
            store_base_name=name,
            sequence_id=name,
            sequence_timestamp_interval_us=interval.from_start_end(int(starts[0]), int(ends[-1])),
            generic_meta_data=cast("dict[str, Any]", dict(export.statement)),
        )
        register = self._writer.register_component_writer
        poses = register(v4.PosesComponent.Writer, _INSTANCE, "poses")
        poses.store_dynamic_pose("rig", "world", *_path(export, self._frames))
        poses.store_static_pose(CAMERA_ID, "rig", np.eye(4))
        poses.store_static_pose("world", "world_global", np.eye(4))
        intrinsics = register(v4.IntrinsicsComponent.Writer, _INSTANCE, "intrinsics")
        intrinsics.store_camera_intrinsics(CAMERA_ID, parameters)
        register(v4.MasksComponent.Writer, _INSTANCE, "masks").store_camera_masks(CAMERA_ID, {})
        register(v4.CuboidsComponent.Writer, _INSTANCE, "cuboids").store_observations([])
        self._camera = register(v4.CameraSensorComponent.Writer, CAMERA_ID, CAMERA_ID)

    @property
    def camera(self) -> Camera:
        """The camera that is written."""
        return self._export.camera

    def add(self, frame: int, image: bytes) -> None:
        """Writes the file of a frame's image."""
        number = int(self._export.frames.frame_numbers[frame])
        about = {"source_frame": number, "name": self._export.frames.names[frame]}
        self._camera.store_frame(image, self._kind, self._frames[frame], {}, about)

    def finish(self, colours: NDArray[np.uint8]) -> None:
        """Writes the points with their (p, 3) RGB colours, closes the stores, and writes the file that names them."""
        data, v4 = _loaded("ncore.data"), _loaded("ncore.data.v4")
        points = v4.PointCloudsComponent
        rgb = points.AttributeSchema(data.PointCloud.AttributeTransformType.INVARIANT, np.dtype("uint8"), (3,))
        self._writer.register_component_writer(
            points.Writer, "sfm_points", "sfm_points",
            coordinate_unit=data.PointCloud.CoordinateUnit.UNITLESS, attribute_schemas={"rgb": rgb},
        ).store_pc(
            xyz=self._export.frames.scene.points.astype(np.float32), reference_frame_id="world",
            reference_frame_timestamp_us=int(self._frames[0, 0]), attributes={"rgb": colours},
        )  # fmt: skip
        stores = self._writer.finalize()
        meta = v4.SequenceComponentGroupsReader(stores).get_sequence_meta()
        (self._folder / f"{self._name}.json").write_bytes(json_bytes(meta.to_dict()))


def _microseconds(export: Export, end: int) -> NDArray[np.int64]:
    """(f,) times of the first line that is read of each frame (0) or of the last (1), after the very first of all."""
    delays = sorted((export.row_delay(0), export.row_delay(export.line_count - 1)))
    times = export.frames.scene.frame_times
    seconds = (times - times[0] + delays[end] - delays[0]) * export.frame_interval_s
    return np.asarray(np.round(seconds * _MICROSECONDS), np.int64)


def _path(export: Export, frames: NDArray[np.uint64]) -> tuple[FloatArray, NDArray[np.uint64]]:
    """(n, 4, 4) poses world_from_cam at (n,) times: those of the start and the end of each frame."""
    times, places = np.unique(frames.ravel(), return_index=True)
    fitted = np.stack(_fitted_ends(export), axis=1).reshape(-1, 3, 4)
    if np.any(frames[:-1, 1] >= frames[1:, 0]):
        # A readout as long as the frame interval: the path in time is one, and has no room for poses of single frames.
        fitted = np.stack([export.row_poses(row) for row in _end_rows(export)], axis=1).reshape(-1, 3, 4)
    poses = fitted[places]
    rotations = poses[:, :, :3].transpose(0, 2, 1)
    return homogeneous(np.concatenate([rotations, camera_centres(poses)[:, :, None]], axis=2)), times


def _end_rows(export: Export) -> tuple[int, int]:
    """The line that is read first, and the one that is read last."""
    last = export.line_count - 1
    return (0, last) if export.row_delay(last) >= 0 else (last, 0)


def _fitted_ends(export: Export) -> tuple[FloatArray, FloatArray]:
    """(f, 3, 4) cam_from_world at the start and the end of each frame, between which all lines are met best.

    With R(s) the rotation at the share s of the readout and R the one in its middle, log(R(s) R^T) is fitted by a
    straight line in s. So is the translation that puts the camera where it is under the fitted rotation.
    """
    first, last = _end_rows(export)
    shares = np.linspace(0.0, 1.0, _FITTED_LINES)
    poses = np.stack([export.row_poses(first + share * (last - first)) for share in shares])
    middle = Rotation.from_matrix(poses[_FITTED_LINES // 2, :, :, :3])
    turns = np.stack([(Rotation.from_matrix(one[:, :, :3]) * middle.inv()).as_rotvec() for one in poses])
    fit_turn = _straight(turns, shares)
    rotations = np.stack([(Rotation.from_rotvec(turn) * middle).as_matrix() for turn in fit_turn])
    centres = np.stack([camera_centres(one) for one in poses])
    translations = _straight(-np.einsum("sfij,sfj->sfi", rotations, centres), shares)
    ends = np.concatenate([rotations, translations[..., None]], axis=3)
    return ends[0], ends[-1]


def _straight(values: FloatArray, shares: FloatArray) -> FloatArray:
    """(s, f, 3) values replaced by the straight line through them that is nearest."""
    centred = shares - shares.mean()
    slope = np.tensordot(centred, values, axes=1) / (centred @ centred)
    return values.mean(axis=0) + centred[:, None, None] * slope


def _camera(export: Export) -> Any:
    """Its `CameraModelParameters`."""
    data = _loaded("ncore.data")
    lens, camera = export.camera.lens, export.camera
    types = data.ShutterType
    directions = {
        "top_to_bottom": types.ROLLING_TOP_TO_BOTTOM, "bottom_to_top": types.ROLLING_BOTTOM_TO_TOP,
        "left_to_right": types.ROLLING_LEFT_TO_RIGHT, "right_to_left": types.ROLLING_RIGHT_TO_LEFT,
    }  # fmt: skip
    common: dict[str, Any] = {
        "resolution": np.array([camera.width, camera.height], np.uint64),
        "shutter_type": directions[camera.shutter.direction] if export.readout_time_s else types.GLOBAL,
        "external_distortion_parameters": None,
        "principal_point": np.array([lens.cx + HALF_PIXEL, lens.cy + HALF_PIXEL], np.float32),
        "focal_length": np.array([lens.fx, lens.fy], np.float32),
    }
    if export.is_fisheye:
        radial = np.array(export.distortion, np.float32)
        kind = data.OpenCVFisheyeCameraModelParameters
        names = ("resolution", "focal_length", "principal_point")
        angle = kind.compute_max_angle(**{name: common[name] for name in names}, radial_coeffs=radial)
        return kind(**common, radial_coeffs=radial, max_angle=angle)
    values = np.array(export.coefficients(("k1", "k2", "k3", "k4", "k5", "k6", "p1", "p2")), np.float32)
    return data.OpenCVPinholeCameraModelParameters(
        **common, radial_coeffs=values[:6], tangential_coeffs=values[6:], thin_prism_coeffs=np.zeros(4, np.float32)
    )
