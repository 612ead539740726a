"""The closest lens that a format can hold, for formats that have none like the calibration's."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from rssc.inference.lens_conversion import convert_lens
from rssc.model.arrays import FloatArray
from rssc.model.lens import LENS_MODELS, Lens
from rssc.outputs.exporters.exporter import Export, LensNotHeldError

T = TypeVar("T")

_WORST_RMS_PX = 0.5
"""Root mean square over the image from which on a lens is refused, not replaced by another one. Chosen by hand: what
most tools take for an inlier is two to four times as far."""
_GRID = 41


@dataclass(frozen=True)
class NearestLens:
    """A lens in place of another one: the same rays, as far as its model can hold them."""

    lens: Lens
    rms_px: float
    """Over the image, of what both see."""
    most_px: float

    def words(self, model: str) -> str:
        return (
            f"this format has no {model} lens; the closest {self.lens.model} lens stands for it, which is off by "
            f"{self.rms_px:.2g} px (root mean square over the image), {self.most_px:.2g} px at most"
        )


def with_held_lens(export: Export, make: Callable[[Export], T]) -> T:
    """What `make` makes of an export, or of the same with the closest lens that it can hold; then a warning says so.

    Raises:
        LensNotHeldError: It has none that is close.
    """
    try:
        return make(export)
    except LensNotHeldError as error:
        refused = error
    camera = export.camera
    for found in nearest_lenses(camera.lens, camera.width, camera.height):
        if found.rms_px > _WORST_RMS_PX:
            break
        try:
            made = make(_with_lens(export, found))
        except LensNotHeldError:
            continue
        warnings.warn(found.words(camera.lens.model), stacklevel=3)
        return made
    raise refused


def nearest_lenses(lens: Lens, width: int, height: int) -> list[NearestLens]:
    """The lenses of all other models with the rays of a lens, the closest first."""
    u, v = np.meshgrid(np.linspace(0, width - 1, _GRID), np.linspace(0, height - 1, _GRID))
    pixels = np.column_stack([u.ravel(), v.ravel()])
    rays = lens.unproject(pixels)
    pixels, rays = pixels[np.isfinite(rays).all(axis=1)], rays[np.isfinite(rays).all(axis=1)]
    found: list[NearestLens] = []
    for model in LENS_MODELS:
        if model == lens.model:
            continue
        near = convert_lens(lens, model, width, height)
        # What it does not see is off by the whole image.
        off: FloatArray = np.linalg.norm(near.project(rays) - pixels, axis=1)
        off = np.nan_to_num(off, nan=float(max(width, height)))
        found.append(NearestLens(near, float(np.sqrt(np.mean(off**2))), float(off.max())))
    return sorted(found, key=lambda one: one.rms_px)


def _with_lens(export: Export, near: NearestLens) -> Export:
    statement = {**export.statement, "lens": near.words(export.camera.lens.model)}
    stretch = export.stretch
    if stretch is not None:
        scene = stretch.scene
        stretch = replace(stretch, scene=replace(scene, camera=replace(scene.camera, lens=near.lens)))
    return replace(export, camera=replace(export.camera, lens=near.lens), stretch=stretch, statement=statement)
