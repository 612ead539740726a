"""Clips drawn from a seed, each with its own world, motion, lens, size, rate, exposure, noise, compression and movers.

`SEEDS` says which seeds belong to what. Constants of the package are fitted on those of `fit`, which no benchmark
reports.

A clip is *good* where what was drawn suffices to determine a camera: `Content` measures that on exact tracks and on one
frame, and never looks at a calibration. Others are *doubtful*: they may be flagged, and must be where they are wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import cv2
import numpy as np

from rssc.model.arrays import FloatArray, Image
from rssc.model.lens import LENS_MODELS
from rssc.model.poses import camera_centres
from rssc.simulation.clip import Clip, ClipOptions, make_clip, typical_lens
from rssc.simulation.draw_lens import draw_lens, draw_unmodelled
from rssc.simulation.draw_motion import draw_motion
from rssc.simulation.draw_world import SCALES, add_movers, draw_world

SEEDS = {
    "coverage": range(0, 2_000),
    "troubles": range(2_000, 3_000),
    "exposure": range(3_000, 4_000),
    "near_global": range(4_000, 5_000),
    # 5,000 to 6,000, and of "fit" those from 15,000 on: `faulty_draws`, kept there so that rendered frames stay valid.
    "fit": range(10_000, 20_000),
}
assert all(set(one).isdisjoint(other) for one, other in combinations(SEEDS.values(), 2))

SIZES = ((480, 360), (640, 360), (640, 480), (640, 480), (720, 480), (800, 450), (360, 480))
RATES = (20.0, 24.0, 25.0, 29.97, 30.0, 30.0, 50.0, 59.94)
PRESETS = ("veryfast", "medium")
_LENSES = {
    "pinhole": 0.10, "radial": 0.16, "opencv": 0.16, "full_opencv": 0.09, "fisheye": 0.16, "thin_prism_fisheye": 0.08,
    "arctangent": 0.09, "division": 0.07, "rational": 0.09,
}  # fmt: skip
_MOTIONS = {"hand_held": 0.3, "shaky": 0.2, "walking": 0.2, "drone": 0.15, "turning": 0.15}
_WORLDS = {"room": 0.5, "corridor": 0.25, "outdoors": 0.25}
_SPARE = 2.0
"""Frames before and after a clip in which nothing is in the camera's way either."""


@dataclass(frozen=True)
class Draw:
    """What was drawn of a clip, but for what is drawn from the seed again when it is made: world, motion and lens."""

    seed: int
    lens: str
    """A model of the registry, or a profile that none of them holds."""
    motion: str
    world: str
    readout: float
    axis: Literal["rows", "columns"]
    width: int
    height: int
    frames: int
    fps: float
    exposure: float
    noise: float
    """In grey levels."""
    crf: int | None
    """Of H.264; None for PNG frames."""
    preset: str
    movers: int
    contrast: float | None = None
    """Of the texture; drawn where None."""
    stabilised: bool = False

    @property
    def exact(self) -> bool:
        """Whether a model of the registry holds the lens."""
        return self.lens in LENS_MODELS

    def __str__(self) -> str:
        extra = ["columns"] * (self.axis == "columns") + [f"{self.movers} movers"] * (self.movers > 0)
        extra += ["no texture"] * (self.contrast == 0) + ["stabilised"] * self.stabilised
        footage = "PNG" if self.crf is None else f"CRF {self.crf}"
        return (
            f"{self.seed:5d} {self.lens[:12]:12s} {self.motion:9s} {self.world:8s} {self.width}x{self.height} "
            f"{self.frames:2d} {self.fps:5.2f}/s {footage:6s} noise {self.noise:3.1f} exposure {self.exposure:4.2f} "
            f"readout {self.readout:+6.3f} {', '.join(extra)}"
        )


def draw(seed: int, **fixed: Any) -> Draw:
    """What a seed gives; fields may be fixed, which leaves the others as they are."""
    rng = np.random.default_rng([seed, 10])
    width, height = SIZES[rng.integers(len(SIZES))]
    drawn = Draw(
        seed=seed,
        lens=_choice(rng, _LENSES),
        motion=_choice(rng, _MOTIONS),
        world=_choice(rng, _WORLDS),
        readout=_draw_readout(rng),
        axis="columns" if rng.uniform() < 0.12 else "rows",
        width=width,
        height=height,
        frames=int(rng.integers(40, 81)),
        fps=RATES[rng.integers(len(RATES))],
        exposure=_draw_exposure(rng),
        noise=round(rng.uniform(0, 4), 2),
        crf=int(rng.integers(18, 31)) if rng.uniform() < 0.5 else None,
        preset=PRESETS[rng.integers(len(PRESETS))],
        movers=int(rng.integers(1, 4)) if rng.uniform() < 0.25 else 0,
    )
    return replace(drawn, **fixed)


def clip_of(drawn: Draw) -> Clip:
    """The clip; its frames are rendered on demand."""
    motion_rng, world_rng, lens_rng, mover_rng = (np.random.default_rng([drawn.seed, 11 + i]) for i in range(4))
    motion = draw_motion(motion_rng, drawn.motion, drawn.fps, SCALES[drawn.world])
    path = camera_centres(motion.cam_from_world(np.linspace(-_SPARE, drawn.frames + _SPARE, 4 * drawn.frames)))
    world = draw_world(world_rng, drawn.world, path, drawn.contrast)
    world = add_movers(mover_rng, world, drawn.movers, drawn.frames / drawn.fps, path)
    width, height = drawn.width, drawn.height
    lens, optics = typical_lens("pinhole", width, height), None
    if drawn.exact:
        lens = draw_lens(lens_rng, drawn.lens, width, height)
    else:
        optics = draw_unmodelled(lens_rng, drawn.lens, width, height)
    options = ClipOptions(
        width, height, drawn.frames, drawn.fps, lens, optics, drawn.readout, drawn.axis, drawn.motion, drawn.world,
        seed=drawn.seed, image_noise=drawn.noise, exposure=drawn.exposure, exposure_samples=None,
    )  # fmt: skip
    return make_clip(options, motion, world)


def _draw_readout(rng: np.random.Generator) -> float:
    kind, near, usual = rng.uniform(), rng.uniform(0.01, 0.03) * rng.choice((-1.0, 1.0)), rng.uniform(-1, 1)
    return 0.0 if kind < 0.08 else round(float(near if kind < 0.16 else usual), 4)


def _draw_exposure(rng: np.random.Generator) -> float:
    kind, usual, long = rng.uniform(), rng.uniform(0.02, 0.6), rng.uniform(0.6, 1.0)
    return 0.0 if kind < 0.25 else round(usual if kind < 0.85 else long, 3)


def _choice(rng: np.random.Generator, shares: dict[str, float]) -> str:
    weights = np.array(list(shares.values()))
    return list(shares)[rng.choice(len(weights), p=weights / weights.sum())]


@dataclass(frozen=True)
class Content:
    """What there is in a clip to determine a camera by, whatever a calibration makes of it."""

    speed: float
    """Median movement of the image from frame to frame, as a share of its width."""
    change: float
    """Scatter of that movement over the clip, as a share of the width: at one speed a readout is a skew."""
    parallax_deg: float
    """Median angle between two views of a point, twenty frames apart at the most."""
    depth_ratio: float
    """Farthest over nearest tenth of the points of a frame, the median over frames."""
    blur_px: float
    """Median length of the blur."""
    texture: float
    """Share of the cells of a frame that have a corner above the noise."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """What there is too little, or too much, of; none for a good clip. Limits are chosen by hand, before any
        calibration: a movement of 2 px at 640, parallax for depths to a few percent."""
        found = {
            "speed": self.speed < 0.003,
            "change": self.change < 0.0015,
            "parallax": self.parallax_deg < 1.5,
            "depth": self.depth_ratio < 1.25,
            "blur": self.blur_px > 12,
            "texture": self.texture < 0.4,
        }
        return tuple(name for name, bad in found.items() if bad)


_GRID, _CELLS, _APART, _STEP = (10, 8), (12, 9), 20, 6


def content_of(clip: Clip, image: Image | None = None) -> Content:
    """Measures a clip on exact tracks and on its middle frame, which is rendered where it is not given."""
    camera, count = clip.camera, len(clip)
    x, y = (
        np.linspace(0.04 * size, 0.96 * size, n) for size, n in zip((camera.width, camera.height), _GRID, strict=True)
    )
    nodes = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    centres = camera_centres(clip.motion.cam_from_world(np.arange(count)))
    velocities: list[FloatArray] = []
    angles: list[FloatArray] = []
    depths: list[float] = []
    for frame in range(0, count - 1, _STEP):
        points = clip.world_points(frame, nodes)
        shown = np.isfinite(points).all(axis=1)
        if not shown.any():
            continue
        points = points[shown]
        following, visible = clip.observe(points, frame + 1)
        velocities.append(np.median((following - nodes[shown])[visible], axis=0) if visible.any() else np.zeros(2))
        later = min(frame + _APART, count - 1)
        _, visible = clip.observe(points, later)
        towards = [points[visible] - centres[i] for i in (frame, later)]
        lengths = [np.linalg.norm(rays, axis=1) for rays in towards]
        cosines = (towards[0] * towards[1]).sum(axis=1) / (lengths[0] * lengths[1])
        angles.append(np.degrees(np.arccos(np.clip(cosines, -1, 1))))
        away = np.linalg.norm(points - centres[frame], axis=1)
        depths.append(float(np.percentile(away, 90) / np.percentile(away, 10)))
    moved = np.array(velocities).reshape(-1, 2) / camera.width
    blur = [clip.options.exposure * float(np.median(clip.image_speeds(i))) for i in range(0, count, _STEP)]
    return Content(
        float(np.median(np.linalg.norm(moved, axis=1))) if len(moved) else 0.0,
        float(np.sqrt(moved.var(axis=0).sum())) if len(moved) else 0.0,
        float(np.median(np.concatenate(angles))) if angles and sum(map(len, angles)) else 0.0,
        float(np.median(depths)) if depths else 1.0,
        float(np.median(blur)),
        texture_share(clip.frame(count // 2) if image is None else image, clip.options.image_noise),
    )


def texture_share(image: Image, noise: float, cells: Sequence[int] = _CELLS) -> float:
    """Share of the cells of an image with a corner: gradients in all directions of 1.5 grey levels a pixel, and
    1.5 times those of the noise on top."""
    grey = image.astype(np.float32)
    across, down = cv2.Sobel(grey, cv2.CV_32F, 1, 0, scale=1 / 8), cv2.Sobel(grey, cv2.CV_32F, 0, 1, scale=1 / 8)
    xx, xy, yy = (cv2.blur(product, (7, 7)) for product in (across * across, across * down, down * down))
    weakest = 0.5 * (xx + yy) - np.sqrt(0.25 * (xx - yy) ** 2 + xy * xy)
    gradient = np.sqrt(np.maximum(weakest, 0))
    # A Sobel filter leaves sqrt(12) / 8 of the noise.
    enough = gradient > 1.5 * (1 + np.sqrt(12) / 8 * noise)
    rows = np.array_split(enough, cells[1], axis=0)
    found = [part.any() for row in rows for part in np.array_split(row, cells[0], axis=1)]
    return float(np.mean(found))
