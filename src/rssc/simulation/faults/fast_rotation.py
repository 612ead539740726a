"""The fast part of a camera's rotation: what a stabiliser feels with its gyroscope and takes back.

Angular velocities w of the camera (R <- exp(w dt) R) are summed up to angles and pass a high-pass filter that knows the
past only, as in a phone: slow turns are meant, fast ones are not.
"""

from dataclasses import dataclass

import numpy as np
from scipy.signal import butter, sosfilt
from scipy.spatial.transform import Rotation

from rssc.model.arrays import FloatArray
from rssc.model.lens import Lens
from rssc.runtime.constants import Constants
from rssc.simulation.motion import Motion

MARGIN = 3.0
"""Frame intervals before and after a clip for which faults are known, too."""


@dataclass(frozen=True)
class FastRotationConstants(Constants):
    """What counts as fast, and how finely it is sampled."""

    cutoff_hz: float = 0.8
    """Below it turns are meant. Chosen by hand: between slow pans and the steps and tremor of who holds the camera."""
    order: int = 2
    """Of the Butterworth filter. Chosen by hand."""
    samples_per_frame: int = 16
    """Simulated motions have up to 0.5 waves a frame: a cubic spline through the samples is right to 1e-4."""
    settling_s: float = 3.0
    """For which the filter runs before the clip: it forgets within a fraction of a second."""


FAST_ROTATION = FastRotationConstants()


def sample_times(frame_count: int) -> FloatArray:
    """(n,) times in frame intervals at which faults are sampled, over a clip and `MARGIN` around it."""
    steps = int(MARGIN * FAST_ROTATION.samples_per_frame)
    return (
        np.arange(-steps, frame_count * FAST_ROTATION.samples_per_frame + steps + 1) / FAST_ROTATION.samples_per_frame
    )


def fast_rotation(motion: Motion, times: FloatArray) -> FloatArray:
    """(n, 3) angles in rad about the camera's axes, by which fast rotation has turned it at (n,) `sample_times`."""
    rate = FAST_ROTATION.samples_per_frame
    before = int(FAST_ROTATION.settling_s * motion.frames_per_second) * rate
    all_times = np.concatenate((times[0] + np.arange(-before, 0) / rate, times))
    rotations = motion.cam_from_world(all_times)[:, :, :3]
    steps = Rotation.from_matrix(rotations[1:] @ rotations[:-1].transpose(0, 2, 1)).as_rotvec()
    angles = np.vstack((np.zeros(3), np.cumsum(steps, axis=0)))
    sections = butter(
        FAST_ROTATION.order, FAST_ROTATION.cutoff_hz, "highpass", fs=rate * motion.frames_per_second, output="sos"
    )
    return np.asarray(sosfilt(sections, angles, axis=0), dtype=np.float64)[before:]


def centre_shift(lens: Lens, angles: FloatArray) -> FloatArray:
    """(n, 2) how far (n, 3) small turns of a camera move what it shows in the middle, in pixels."""
    return np.stack((lens.fx * angles[:, 1], -lens.fy * angles[:, 0]), axis=1)
