"""Points that Blender itself renders, by the script of `rssc export --to blender`, against where the camera saw them.

Small spheres stand where the camera of a simulated clip saw pixels of a frame, each when its row was read. Blender runs
the script and renders the frame in Cycles: the centre of a sphere's light is where Blender sees it. `global` is the
same with `ROLLING_SHUTTER = False`, for comparison.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.limits import Figures, Limit, check
from rssc.errors import InputError
from rssc.model import Lens
from rssc.model.arrays import FloatArray
from rssc.model.calibration import Calibration
from rssc.outputs.exporters import export_files
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.truth import true_calibration

LIMITS = (Limit("rolling_px", most=0.1), Limit("gain", least=5.0))
"""Of the worst point of all clips; the gain is that of the median over the global shutter's."""
_WIDTH, _HEIGHT, _FRAMES, _FRAME = 161, 121, 8, 4
_RADIUS_PX, _WINDOW_PX = 3.0, 9
_CLIPS: tuple[tuple[Literal["hand_held", "shaky"], float], ...] = (("hand_held", 0.0), ("shaky", 0.0), ("shaky", 0.25))
"""Motion, and exposure as a share of the frame interval."""
_RENDER = """
import json
import bpy

for thing in list(bpy.data.objects):
    bpy.data.objects.remove(thing)
exec(compile(open({script!r}).read(), {script!r}, "exec"))
scene = bpy.context.scene
light = bpy.data.materials.new("light")
light.use_nodes = True
light.node_tree.nodes.clear()
emission = light.node_tree.nodes.new("ShaderNodeEmission")
output = light.node_tree.nodes.new("ShaderNodeOutputMaterial")
light.node_tree.links.new(emission.outputs[0], output.inputs[0])
for place, radius in {spheres!r}:
    bpy.ops.mesh.primitive_uv_sphere_add(radius=radius, location=place)
    bpy.context.object.data.materials.append(light)
scene.world = bpy.data.worlds.new("dark")
scene.world.use_nodes = True
scene.world.node_tree.nodes["Background"].inputs[0].default_value = (0, 0, 0, 1)
scene.cycles.samples, scene.cycles.use_denoising, scene.cycles.pixel_filter_type = 128, False, "BOX"
scene.render.threads_mode, scene.render.threads = "FIXED", 1
scene.render.image_settings.file_format, scene.render.filepath = "OPEN_EXR", {image!r}
scene.frame_set({frame})
bpy.ops.render.render(write_still=True)
image = bpy.data.images.load({image!r})
pixels = list(image.pixels)
with open({pixels!r}, "w") as file:
    json.dump({{"version": bpy.app.version_string, "size": list(image.size), "red": pixels[::image.channels]}}, file)
"""


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks blender", description=__doc__)
    parser.add_argument("--blender", default="blender", help="Blender, or a Python that has the module bpy")
    options = parser.parse_args(argv)
    print("motion    exposure   rolling, worst px  median px   global, worst px  median px")
    rolling: list[float] = []
    medians: list[float] = []
    version = ""
    for motion, exposure in _CLIPS:
        lens = Lens("pinhole", 150.0, 143.0, 84.0, 57.0)
        clip = render_clip(
            ClipOptions(
                _WIDTH, _HEIGHT, _FRAMES, lens=lens, readout_ratio=0.62, motion=motion, seed=3, exposure=exposure
            )
        )  # fmt: skip
        calibration = true_calibration(clip, tuple(f"frame_{i:06d}" for i in range(_FRAMES)))
        pixels, spheres = _spheres(calibration)
        script = export_files(calibration, "blender")["blender_scene.py"].decode()
        distances: list[FloatArray] = []
        for text in (script, script.replace("ROLLING_SHUTTER = True", "ROLLING_SHUTTER = False")):
            image, version = _render(options.blender, text, spheres)
            distances.append(np.linalg.norm(_centres(image, pixels) - pixels, axis=1))
        worst, middle = [one.max() for one in distances], [float(np.median(one)) for one in distances]
        print(f"{motion:9s} {exposure:8.2f} {worst[0]:19.3f} {middle[0]:10.3f} {worst[1]:18.3f} {middle[1]:10.3f}")
        rolling.append(float(worst[0]))
        medians.append(middle[1] / middle[0])
    print(f"Blender {version}")
    return {"rolling_px": max(rolling), "gain": min(medians)}


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)


def _spheres(calibration: Calibration) -> tuple[FloatArray, list[tuple[list[float], float]]]:
    """(n, 2) pixels of the frame, and a sphere (place, radius) that each of them saw when its row was read."""
    scene, random = calibration.stretches[0].scene, np.random.default_rng(5)
    assert scene.trajectory is not None
    rows = np.linspace(10, _HEIGHT - 11, 7)
    pixels = np.column_stack([random.uniform(15, _WIDTH - 16, len(rows)), rows])
    depths = random.uniform(2, 5, len(rows))
    poses = scene.trajectory.cam_from_world(scene.row_times(pixels, np.full(len(rows), _FRAME)))
    local = scene.camera.lens.unproject(pixels) * depths[:, None]
    places = np.einsum("nji,nj->ni", poses[:, :, :3], local - poses[:, :, 3])
    radii = _RADIUS_PX / scene.camera.lens.fx * depths
    return pixels, [(place, float(radius)) for place, radius in zip(places.tolist(), radii, strict=True)]


def _render(blender: str, script: str, spheres: list[tuple[list[float], float]]) -> tuple[FloatArray, str]:
    """(h, w) what Blender makes of a frame of the script's scene, rows from the top; and Blender's version."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scene.py").write_text(script)
        places = {part: str(folder / file) for part, file in
                  (("script", "scene.py"), ("image", "image.exr"), ("pixels", "pixels.json"))}  # fmt: skip
        (folder / "render.py").write_text(_RENDER.format(**places, spheres=spheres, frame=_FRAME))
        command = [blender, "--background", "--python"] if Path(blender).name.startswith("blender") else [blender]
        try:
            done = subprocess.run([*command, str(folder / "render.py")], capture_output=True, text=True, check=False)
        except OSError as error:
            raise InputError(f"cannot run {blender}: {error.strerror}; give Blender with --blender.") from error
        if not (folder / "pixels.json").exists():
            raise InputError(f"{blender} rendered nothing: {done.stderr.strip().splitlines()[-1:]}")
        found = json.loads((folder / "pixels.json").read_text())
    width, height = found["size"]
    return np.array(found["red"]).reshape(height, width)[::-1], found["version"]


def _centres(image: FloatArray, pixels: FloatArray) -> FloatArray:
    """(n, 2) the centre of the light around each pixel, of what is nearer to it than to the others."""
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    nearest = np.argmin([np.hypot(x - u, y - v) for u, v in pixels], axis=0)
    found: list[tuple[float, float]] = []
    for i, (u, v) in enumerate(pixels):
        light = image * (nearest == i) * (np.hypot(x - u, y - v) < _WINDOW_PX)
        found.append((float((light * x).sum() / light.sum()), float((light * y).sum() / light.sum())))
    return np.array(found)
