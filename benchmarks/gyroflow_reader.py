"""Gyroflow by its rules: what it makes of a log, a lens profile and a frame. Nothing of ours is used.

Written out from its public source (imu_integration, gyro_source, stabilization/frame_transform); the log itself is read
by telemetry-parser, as there:

- letters of the orientation pick g from the rates; (-g2, g1, g3) is about x right, y up, z backward
- a sample's rate turns the camera from the sample before to this one; between samples, spherical interpolation
- a frame's time stamp is i / fps, its row y is exposed at the stamp + readout * (y / H - 1/2), readout negative for
  the two directions that go backwards, and W in place of H for the two that go sideways
- the picture is that of a pinhole with the profile's focal lengths, its centre in the middle of the picture
"""

import importlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

Array = NDArray[np.float64]
_FLIP = np.diag([1.0, -1.0, -1.0])
"""From x right, y up, z backward to x right, y down, z forward, and back."""
_ROW_STEPS = 3


@dataclass(frozen=True)
class Log:
    """What a .gcsv says."""

    path: Path

    @cached_property
    def header(self) -> dict[str, str]:
        """What is written above the samples."""
        return self.parser.telemetry()[0]["Default"]["Metadata"]

    @cached_property
    def rotations(self) -> Slerp:
        """World from camera at times in seconds from the first frame on; axes x right, y down, z forward."""
        samples = self.parser.normalized_imu(None)
        times = 1e-3 * np.array([sample["timestamp_ms"] for sample in samples])
        g1, g2, g3 = np.radians([sample["gyro"] for sample in samples]).T
        rates = np.stack([-g2, g1, g3], axis=1)
        turn = Rotation.identity()
        turns: list[Rotation] = []
        for rate, seconds in zip(rates, np.diff(times, prepend=times[0]), strict=True):
            turn = turn * Rotation.from_rotvec(rate * seconds)
            turns.append(turn)
        bodies = Rotation.concatenate(turns).as_matrix()
        return Slerp(times, Rotation.from_matrix(_FLIP @ bodies @ _FLIP))

    def world_from_camera(self, times_s: Array) -> Array:
        """(n, 3, 3) rotations; held before the first sample and after the last."""
        slerp = self.rotations
        return slerp(np.clip(times_s, slerp.times[0], slerp.times[-1])).as_matrix()

    @cached_property
    def parser(self) -> Any:
        """Of telemetry-parser, which has no types."""
        return importlib.import_module("telemetry_parser").Parser(str(self.path))


@dataclass(frozen=True)
class Stabiliser:
    """Takes all rotation out of frames: each is shown as the camera looked at the first frame's stamp."""

    log: Log
    profile: dict[str, Any]

    @staticmethod
    def load(log: Path, profile: Path) -> "Stabiliser":
        return Stabiliser(Log(log), json.loads(profile.read_text()))

    @property
    def matrix(self) -> Array:
        """(3, 3) camera matrix of the stabilised picture."""
        width, height = self._size
        matrix = self._camera_matrix.copy()
        matrix[:2, 2] = width / 2, height / 2
        return matrix

    def stabilise(self, image: NDArray[np.uint8], frame: int) -> NDArray[np.uint8]:
        """The frame as the camera would have seen it at its stamp, turned to where it looked at the first one's."""
        width, height = self._size
        x, y = np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float))
        out = np.stack([x.ravel(), y.ravel(), np.ones(x.size)], axis=1)
        rays = out @ np.linalg.inv(self.matrix).T
        turns = self._line_turns(frame)
        lines = np.full(len(rays), len(turns) // 2)
        pixels = np.zeros((len(rays), 2))
        for _ in range(_ROW_STEPS):
            pixels = self._project(np.einsum("nij,nj->ni", turns[lines], rays))
            at = np.nan_to_num(pixels[:, 0 if self._sideways else 1])
            lines = np.clip(np.round(at), 0, len(turns) - 1).astype(int)
        source = pixels.reshape(height, width, 2).astype(np.float32)
        return np.asarray(cv2.remap(image, source, np.empty(0), cv2.INTER_CUBIC), np.uint8)

    def _line_turns(self, frame: int) -> Array:
        """(lines, 3, 3) from the camera at the first stamp to the camera when each line was read."""
        count = self._size[0 if self._sideways else 1]
        readout = 1e-3 * self.profile["frame_readout_time"]
        if self.profile["frame_readout_direction"] in ("BottomToTop", "RightToLeft"):
            readout = -readout
        stamp = frame / self.profile["fps"]
        lines = self.log.world_from_camera(stamp + readout * (np.arange(count) / count - 0.5))
        return lines.transpose(0, 2, 1) @ self.log.world_from_camera(np.zeros(1))

    def _project(self, rays: Array) -> Array:
        coefficients = np.array(self._lens["distortion_coeffs"], dtype=float)
        still = np.zeros(3)
        fisheye = self.profile["distortion_model"] == "opencv_fisheye"
        project = cv2.fisheye.projectPoints if fisheye else cv2.projectPoints
        pixels = project(rays[:, None].copy(), still, still, self._camera_matrix, coefficients)[0]
        return np.asarray(pixels, np.float64).reshape(-1, 2)

    @property
    def _lens(self) -> dict[str, list[float]]:
        assert self.profile["asymmetrical"] is True
        return self.profile["fisheye_params"]

    @property
    def _camera_matrix(self) -> Array:
        return np.array(self._lens["camera_matrix"], dtype=float)

    @property
    def _size(self) -> tuple[int, int]:
        size = self.profile["calib_dimension"]
        return size["w"], size["h"]

    @property
    def _sideways(self) -> bool:
        return self.profile["frame_readout_direction"] in ("LeftToRight", "RightToLeft")
