"""Renders with `casting.cu`: on a GPU, or slowly where it is compiled for the CPU."""

import ctypes
import shutil
import subprocess
import weakref
from functools import cache
from pathlib import Path

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from numpy.typing import ArrayLike, NDArray

from rssc.errors import InputError
from rssc.kernels.image.ray_casting import CENTRE, COS, SIN
from rssc.model.arrays import FloatArray
from rssc.model.camera import Camera
from rssc.model.poses import camera_centres
from rssc.simulation.optics import Optics
from rssc.simulation.render import Renderer
from rssc.simulation.world import World

_SOURCE = Path(__file__).with_name("casting.cu")
_NODES = 32
"""Along each side of an image, at which its lens is asked: rays between them are right to 1e-8."""


def compiled(folder: Path, gpu: bool) -> Path:
    """The library, compiled into a folder: for an H100 or H200 by nvcc, or for the CPU."""
    compiler = shutil.which("nvcc" if gpu else "c++")
    if compiler is None:
        raise InputError(f"there is no {'nvcc' if gpu else 'c++'} on the path.")
    library = folder / f"casting-{'gpu' if gpu else 'cpu'}.so"
    options = ("-O3", "-arch=sm_90", "-Xcompiler", "-fPIC") if gpu else ("-O2", "-fPIC", "-x", "c++")
    subprocess.run([compiler, *options, "-shared", "-o", str(library), str(_SOURCE)], check=True)
    return library


@cache
def _loaded(library: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library))
    loaded.new_view.argtypes = [ctypes.c_int] * 6 + [ctypes.c_double, ctypes.c_int64] + [ctypes.c_void_p] * 5
    loaded.new_view.restype = ctypes.c_void_p
    loaded.cast_view.argtypes = [ctypes.c_void_p] * 4
    loaded.cast_view.restype = ctypes.c_char_p
    loaded.delete_view.argtypes = [ctypes.c_void_p]
    return loaded


class InterpolatedOptics:
    """A lens whose rays in an image are interpolated by Chebyshev polynomials, for where asking it takes long."""

    def __init__(self, optics: Optics, width: int, height: int):
        self.project = optics.project
        self._size = width, height
        nodes = chebpts1(_NODES)
        u, v = np.meshgrid(*(0.5 * (nodes + 1) * (size - 1) for size in (width, height)))
        rays = optics.unproject(np.stack((u.ravel(), v.ravel()), axis=1)).reshape(_NODES, _NODES, 3)
        if not np.isfinite(rays).all():
            raise InputError("the lens does not see the whole image; its rays cannot be interpolated.")
        inverse = np.linalg.inv(chebvander(nodes, _NODES - 1))
        self._coefficients = np.einsum("ij,jkc,lk->ilc", inverse, rays, inverse)

    def unproject(self, pixels: ArrayLike) -> FloatArray:
        """See `Optics`."""
        u, v = np.asarray(pixels, dtype=np.float64).T
        (columns, column), (rows, row) = np.unique(u, return_inverse=True), np.unique(v, return_inverse=True)
        width, height = self._size
        across, down = _polynomials(columns, width), _polynomials(rows, height)
        by_row: FloatArray = np.einsum("ri,ijc->rjc", down, self._coefficients)
        rays: FloatArray = np.stack([by_row[..., c] @ across.T for c in range(3)], axis=2)[row, column]
        return rays / np.linalg.norm(rays, axis=1, keepdims=True)


def _polynomials(pixels: FloatArray, size: int) -> FloatArray:
    """(n, nodes) their values at (n,) places along a side of the image."""
    return np.asarray(chebvander(2 * pixels / (size - 1) - 1, _NODES - 1), np.float64)


class CompiledRenderer(Renderer):
    """`Renderer` by a library that `compiled` made."""

    library = Path()
    """Of all that are made."""

    def __init__(
        self,
        camera: Camera,
        world: World,
        texture_strength: float = 1.0,
        colour: bool = False,
        rays: int = 1,
        optics: Optics | None = None,
    ):
        """See `Renderer`; the lens must see the whole image."""
        interpolated = InterpolatedOptics(optics or camera.lens, camera.width, camera.height)
        super().__init__(camera, world, texture_strength, colour, rays, interpolated)
        self._by_column = camera.shutter.axis == "columns"
        self._handles = [self._new_view(*view) for view in self._views]

    def _new_view(self, rays: FloatArray, widths: FloatArray) -> int:
        library, solids = _loaded(self.library), np.ascontiguousarray(self.world.solids)
        texels = self.world.texture.texels
        arrays = [np.ascontiguousarray(array) for array in (rays, widths, solids, self._looks, texels)]
        handle = library.new_view(
            *widths.shape, self._channels, self._by_column, len(solids), self._taps, self.texture_strength, len(texels),
            *(array.ctypes.data for array in arrays),
        )  # fmt: skip
        weakref.finalize(self, library.delete_view, handle)
        return handle

    def render(self, cam_from_world: FloatArray, seconds: FloatArray) -> NDArray[np.float32]:
        """See `Renderer`."""
        rotations = np.ascontiguousarray(cam_from_world[:, :, :3].transpose(0, 2, 1))
        origins = self._local_origins(camera_centres(cam_from_world), seconds)
        image = np.empty((self.camera.height, self.camera.width, self._channels), np.float32)
        total = np.zeros_like(image)
        for handle in self._handles:
            failure: bytes = _loaded(self.library).cast_view(
                handle, rotations.ctypes.data, origins.ctypes.data, image.ctypes.data
            )
            if failure:
                raise RuntimeError(f"rendering failed: {failure.decode()}")
            total += image
        return total / np.float32(len(self._handles))

    def _local_origins(self, centres: FloatArray, seconds: FloatArray) -> FloatArray:
        """`World.local_origins` without a kernel, which takes long where there is no compiler for them."""
        solids = self.world.solids
        away = centres[:, None] - solids[:, CENTRE : CENTRE + 3]
        for mover in self.world.movers:
            away[:, mover.solid] -= mover.path.at(seconds)
        cosine, sine = solids[:, COS], solids[:, SIN]
        x, y, z = away[..., 0], away[..., 1], away[..., 2]
        return np.stack((cosine * x - sine * z, y, sine * x + cosine * z), axis=2)
