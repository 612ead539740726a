"""What datasets are worth: radiance fields trained on them, on views that were held out.

A hand-held clip with a strong rolling shutter is rendered, calibrated from its video, and written as datasets. The
trainer, `examples/train_field.py`, learns one field from frames as filmed with a pose for every row, one from rectified
frames, and two that ignore the shutter: with the pose of the middle row for all rows, and with the poses that a bundle
adjustment finds which takes the shutter for global, given the same lens and tracks. Every 8th frame is held out. Each
field is then asked for what a global shutter would have seen at the middle row of the held-out frames, which the
simulation renders; pixels count that the rectified frames show, too. Poses are those of the calibration, never the
truth.

The trainer wants a GPU, which may be another machine: without `--train` this prepares the folder, prints the command to
run there, and judges the figures.json that it left in the folder.
"""

import argparse
import json
import runpy
import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

import rssc
from benchmarks.limits import Figures, Limit, check
from rssc.io.files import make_folder
from rssc.model.calibration import Calibration
from rssc.outputs.result_folder import CALIBRATION_NAME, write_results
from rssc.simulation.clip import Clip, ClipOptions, render_clip, typical_lens
from rssc.simulation.clip_files import VIDEO_NAME, write_clip
from rssc.solver.bundle import adjust

LIMITS = (Limit("gain_rolling_db", least=2.0), Limit("gain_rectified_db", least=2.0))
"""Over the better of the two fields that ignore the shutter."""
OPTIONS = ClipOptions(
    640, 480, 96, lens=typical_lens("opencv", 640, 480), readout_ratio=0.8, motion="hand_held", seed=3, colour=True
)
HELD_OUT = 8
TRAINER = Path(__file__).parents[1] / "examples" / "train_field.py"
ARMS = {
    "rolling": "as filmed, a pose for every row",
    "rectified": "rectified, one pose",
    "ignored in training": "as filmed, the middle row's pose",
    "ignored throughout": "as filmed, poses of a global shutter",
}
SHOWN, PART = 48, (100, 40, 200, 220)
"""Which held-out frame is shown, and of it the part from (top, left) with so many rows and columns."""
_TRUTH_QUALITY = 99


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks dataset", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/dataset"), help="for clip and datasets")
    parser.add_argument("--train", action="store_true", help="train here; hours without a GPU")
    parser.add_argument("--steps", type=int, default=2900)
    parser.add_argument("--picture", type=Path, help="where to put a part of one view of each field, and the truth")
    options = parser.parse_args(argv)
    folder: Path = options.folder
    figures = folder / "trained" / "figures.json"
    if not figures.exists() or options.train:
        prepare(folder)
        words = [
            "--rolling", "rolling", "--rectified", "rectified", "--ignored", "ignored", "--truth", "truth",
            "--steps", str(options.steps), "--output", "trained",
        ]  # fmt: skip
        if not options.train:
            print(f"{folder} is ready; run in it, where a GPU is: python train_field.py {' '.join(words)}")
            return {}
        at = {name: str(folder / name) for name in ("rolling", "rectified", "ignored", "truth", "trained")}
        runpy.run_path(str(TRAINER))["main"]([word if word.startswith("-") else at.get(word, word) for word in words])
    found = json.loads(figures.read_text())
    print(f"{found['steps']} steps of {found['rays']} rays on {found['device']}")
    print("                                        --------- PSNR on held-out views, dB ---------")
    print("field                                   a global shutter's truth    the field's own frames")
    for name, words in ARMS.items():
        arm = found["fields"][name]
        print(f"{words:39s} {arm['truth_db']:24.2f}    {arm['own_db']:22.2f}")
    if options.picture is not None:
        cv2.imwrite(str(options.picture), picture(folder), [cv2.IMWRITE_JPEG_QUALITY, 88])
    truth = {name: float(found["fields"][name]["truth_db"]) for name in ARMS}
    ignored = max(truth["ignored in training"], truth["ignored throughout"])
    return {
        "gain_rolling_db": truth["rolling"] - ignored,
        "gain_rectified_db": truth["rectified"] - ignored,
        "truth_db": truth,
        "own_db": {name: float(found["fields"][name]["own_db"]) for name in ARMS},
    }


def main(argv: list[str]) -> int:
    figures = measure(argv)
    return check(figures, LIMITS) if figures else 0


def prepare(folder: Path) -> None:
    """Clip, calibration (both kept from an earlier run), datasets, truth and trainer in one folder."""
    clip = render_clip(OPTIONS)
    video, results = folder / "clip" / VIDEO_NAME, folder / "out"
    if not video.exists():
        write_clip(clip, make_folder(folder / "clip"), video=True)
    if not (results / CALIBRATION_NAME).exists():
        write_results(rssc.calibrate(video), make_folder(results))
    calibration = Calibration.load(results / CALIBRATION_NAME)
    kinds = {
        "rolling": ("nerfstudio", calibration),
        "rectified": ("colmap", calibration),
        "ignored": ("nerfstudio", without_shutter(calibration)),
    }
    for name, (kind, shown) in kinds.items():
        shutil.rmtree(folder / name, ignore_errors=True)
        rssc.dataset(video, shown, kind, folder / name, images="jpg")
    write_truth(clip, make_folder(folder / "truth"))
    shutil.copy(TRAINER, folder / TRAINER.name)


def without_shutter(calibration: Calibration) -> Calibration:
    """The calibration as who takes the shutter for global would have it: the same lens and tracks, other poses."""
    stretch = calibration.stretches[0]
    scene, lens = stretch.scene, calibration.camera.lens
    assert scene.trajectory is not None
    times = scene.frame_times + scene.camera.shutter.readout_ratio * _middle(OPTIONS.height)
    still = replace(
        scene, camera=scene.camera.with_readout_ratio(0.0), frame_times=times,
        cam_from_world=scene.trajectory.cam_from_world(times),
    )  # fmt: skip
    fixed = ("readout_ratio", *lens.parameter_names)
    found = adjust(still, method="te", knot_spacing=scene.trajectory.knot_spacing, loss="cauchy", fixed=fixed).scene
    return replace(calibration, camera=found.camera, stretches=(replace(stretch, scene=found),))


def write_truth(clip: Clip, folder: Path) -> None:
    """The held-out frames as a global shutter would have taken them, under the names that they have in datasets."""
    for frame in range(0, len(clip), HELD_OUT):
        image = clip.render_global_shutter(frame, _middle(OPTIONS.height))
        path = folder / f"frame_{frame:06d}.jpg"
        cv2.imwrite(str(path), image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _TRUTH_QUALITY])


def picture(folder: Path) -> NDArray[np.uint8]:
    """A part of one held-out view: the truth, then what each field shows there, from left to right."""
    names = [f"trained/{name.replace(' ', '_')}_{SHOWN}.png" for name in ARMS]
    paths = [folder / name for name in (f"truth/frame_{SHOWN:06d}.jpg", *names)]
    top, left, height, width = PART
    parts = [np.asarray(cv2.imread(str(path)), np.uint8)[top : top + height, left : left + width] for path in paths]
    gap = np.full((height, 4, 3), 255, np.uint8)
    return np.hstack([one for part in parts for one in (part, gap)][:-1])


def _middle(height: int) -> float:
    """How far into the readout the middle row is."""
    return (height - 1) / 2 / height
