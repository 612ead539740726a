"""Trains a small radiance field on datasets of `rssc dataset`, and compares what each is worth on held-out views.

    python train_field.py --rolling out/nerfstudio --rectified out/colmap --truth truth

trains one field on frames as filmed with a pose for every row, one on the same frames with the shutter ignored (all
rows at the pose of the middle one), and one on rectified frames. Every 8th frame is held out. `--truth` is a folder
with the held-out frames as a global shutter would have taken them; without it, each field is judged by its own held-out
frames only. `--ignored` is a dataset of a calibration that itself took the shutter for global.

The field is a hash grid with a small network, as in instant-ngp, and a coarser one that proposes where to sample, as in
mip-NeRF 360. In it a rolling shutter costs nothing: every ray has its own pose. It needs numpy, torch and Pillow; a GPU
takes minutes, a processor hours. It is short rather than fast, and holds matte scenes only: colours do not change with
the direction they are seen from.
"""

import argparse
import json
import struct
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

HELD_OUT = 8
OPENCV_FROM_OPENGL = np.array([1.0, -1.0, -1.0])


@dataclass(frozen=True)
class Views:
    """Images with a ray for every pixel. Camera axes are x right, y down, z forward."""

    names: list[str]
    images: torch.Tensor
    """(n, height, width, 3) from 0 to 1."""
    directions: torch.Tensor
    """(height, width, 3) rays of the pixels in the camera."""
    world_from_cam: torch.Tensor
    """(n, 3, 4)"""
    linear: torch.Tensor
    """(n, 3) velocity of the camera in its own axes, in units of the scene per second."""
    angular: torch.Tensor
    """(n, 3) in rad per second."""
    row_times: torch.Tensor
    """(height,) seconds from the pose to each row."""

    def still(self) -> "Views":
        """The same with all rows at one pose."""
        return replace(self, linear=torch.zeros_like(self.linear), angular=torch.zeros_like(self.angular))

    def rays(self, view: torch.Tensor, row: torch.Tensor, column: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(k, 3) origins and unit directions of the rays of k pixels in the world."""
        rotation, centre = self.world_from_cam[view, :, :3], self.world_from_cam[view, :, 3]
        times = self.row_times[row][:, None]
        local = turned(self.directions[row, column], self.angular[view] * times)
        direction = (rotation @ local[:, :, None])[:, :, 0]
        origin = centre + (rotation @ (self.linear[view] * times)[:, :, None])[:, :, 0]
        return origin, direction / direction.norm(dim=1, keepdim=True)

    @property
    def held_out(self) -> list[int]:
        return list(range(0, len(self.names), HELD_OUT))

    @property
    def trained(self) -> list[int]:
        return [i for i in range(len(self.names)) if i % HELD_OUT]


def turned(vectors: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """(k, 3) vectors turned by (k, 3) rotation vectors."""
    angle = turns.norm(dim=1, keepdim=True).clamp_min(1e-12)
    axis = turns / angle
    along = (axis * vectors).sum(1, keepdim=True) * axis
    return along + (vectors - along) * angle.cos() + torch.linalg.cross(axis, vectors) * angle.sin()


def read_images(folder: Path, names: list[str], shrink: int) -> np.ndarray:
    """(n, height, width, 3) from 0 to 1, each pixel the mean of shrink x shrink."""
    images = np.stack([np.asarray(Image.open(folder / name).convert("RGB"), np.float32) / 255 for name in names])
    count, height, width, _ = images.shape
    height, width = height // shrink, width // shrink
    images = images[:, : height * shrink, : width * shrink]
    return images.reshape(count, height, shrink, width, shrink, 3).mean(axis=(2, 4))


def pixel_grid(height: int, width: int, shrink: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres of pixels in the full image, (0.5, 0.5) at that of the top-left one."""
    return np.meshgrid((np.arange(width) + 0.5) * shrink, (np.arange(height) + 0.5) * shrink)


def load_rolling(folder: Path, shrink: int) -> Views:
    """A dataset for nerfstudio: transforms.json as 3dgs-deblur reads it."""
    document = json.loads((folder / "transforms.json").read_text())
    if document["camera_model"] != "OPENCV":
        raise SystemExit(f"{folder}: this example knows the camera model OPENCV only.")
    frames = sorted(document["frames"], key=lambda frame: frame["file_path"])
    names = [Path(frame["file_path"]).name for frame in frames]
    images = read_images(folder / "images", names, shrink)
    matrices = np.array([frame["transform_matrix"] for frame in frames])[:, :3]
    matrices[:, :, :3] *= OPENCV_FROM_OPENGL
    u, v = pixel_grid(*images.shape[1:3], shrink)
    x0 = x = (u - document["cx"]) / document["fl_x"]
    y0 = y = (v - document["cy"]) / document["fl_y"]
    k1, k2, p1, p2 = (document[name] for name in ("k1", "k2", "p1", "p2"))
    for _ in range(50):
        r2 = x * x + y * y
        radial = 1 + k1 * r2 + k2 * r2 * r2
        x, y = (
            (x0 - 2 * p1 * x * y - p2 * (r2 + 2 * x * x)) / radial,
            (y0 - 2 * p2 * x * y - p1 * (r2 + 2 * y * y)) / radial,
        )
    return Views(
        names,
        tensor(images),
        tensor(np.stack([x, y, np.ones_like(x)], axis=2)),
        tensor(matrices),
        tensor(np.array([frame["camera_linear_velocity"] for frame in frames]) * OPENCV_FROM_OPENGL),
        tensor(np.array([frame["camera_angular_velocity"] for frame in frames]) * OPENCV_FROM_OPENGL),
        tensor(document["rolling_shutter_time"] * (v[:, 0] / document["h"] - 0.5)),
    )


def load_rectified(folder: Path, shrink: int) -> Views:
    """A dataset for COLMAP's readers: sparse/0 with one PINHOLE camera."""
    cameras = (folder / "sparse/0/cameras.bin").read_bytes()
    _, _, model, _, _ = struct.unpack_from("<QiiQQ", cameras)
    if model != 1:
        raise SystemExit(f"{folder}: the camera is no PINHOLE.")
    fx, fy, cx, cy = struct.unpack_from("<4d", cameras, 32)
    data = (folder / "sparse/0/images.bin").read_bytes()
    (count,), at = struct.unpack_from("<Q", data), 8
    poses: dict[str, np.ndarray] = {}
    for _ in range(count):
        *pose, _ = struct.unpack_from("<7di", data, at + 4)
        end = data.index(b"\0", at + 64)
        poses[data[at + 64 : end].decode()] = inverse_pose(np.array(pose[:4]), np.array(pose[4:]))
        (points,) = struct.unpack_from("<Q", data, end + 1)
        at = end + 9 + 24 * points
    names = sorted(poses)
    images = read_images(folder / "images", names, shrink)
    u, v = pixel_grid(*images.shape[1:3], shrink)
    nothing = torch.zeros(count, 3)
    return Views(
        names,
        tensor(images),
        tensor(np.stack([(u - cx) / fx, (v - cy) / fy, np.ones_like(u)], axis=2)),
        tensor(np.stack([poses[name] for name in names])),
        nothing,
        nothing,
        torch.zeros(images.shape[1]),
    )


def inverse_pose(quaternion: np.ndarray, translation: np.ndarray) -> np.ndarray:
    """(3, 4) world_from_cam of the rotation (w, x, y, z) and translation of cam_from_world."""
    w, x, y, z = quaternion
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return np.column_stack([rotation.T, -rotation.T @ translation])


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.float32))


def moved(views: Views, device: str) -> Views:
    return replace(
        views, **{name: value.to(device) for name, value in vars(views).items() if isinstance(value, torch.Tensor)}
    )


class Interpolate(torch.autograd.Function):
    """Values of a hash grid between its nodes. Its own backward, because that of indexing sorts before it adds."""

    @staticmethod
    def forward(ctx, tables, places, resolutions):
        ctx.save_for_backward(places, resolutions)
        ctx.shape = tables.shape
        index, weight = corners(places, resolutions, tables.shape[1])
        found = tables.reshape(-1, 2).index_select(0, index.reshape(-1)).reshape(*weight.shape, 2)
        return (found * weight[..., None]).sum(1)

    @staticmethod
    def backward(ctx, gradient):
        index, weight = corners(*ctx.saved_tensors, ctx.shape[1])
        sums = gradient.new_zeros(ctx.shape[0] * ctx.shape[1], 2)
        sums.index_add_(0, index.reshape(-1), (weight[..., None] * gradient[:, None]).reshape(-1, 2))
        return sums.reshape(ctx.shape), None, None


def corners(places: torch.Tensor, resolutions: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(levels, 8, n) which rows of all tables have the nodes around (n, 3) places, and the weights of these."""
    levels, device = len(resolutions), places.device
    scaled = places.T * resolutions[:, None, None]
    base = scaled.floor()
    share = scaled - base
    side = resolutions[:, None].int() + 1
    # Numbered where there are few enough nodes; otherwise scattered by multiples that overflow, as hashes do.
    numbered = torch.cat([torch.ones_like(side), side, side**2], 1)
    hashed = torch.tensor([1, -1640531535, 805459861], dtype=torch.int32, device=device)
    dense = (side.double() ** 3 <= size)[:, :, None]
    factors = torch.where(dense[:, :, 0], numbered, hashed)[:, :, None]
    low = base.int() * factors
    index = torch.empty(levels, 8, places.shape[0], dtype=torch.int32, device=device)
    weight = torch.empty_like(index, dtype=places.dtype)
    for corner in range(8):
        steps = [corner >> axis & 1 for axis in range(3)]
        x, y, z = (low[:, axis] + factors[:, axis] * steps[axis] for axis in range(3))
        index[:, corner] = torch.where(dense[:, 0], x + y + z, (x ^ y ^ z) & (size - 1))
        a, b, c = (share[:, axis] if steps[axis] else 1 - share[:, axis] for axis in range(3))
        weight[:, corner] = a * b * c
    return index + size * torch.arange(levels, dtype=torch.int32, device=device)[:, None, None], weight


class Field(nn.Module):
    """Density, and colour where it is asked for, at places from 0 to 1."""

    def __init__(self, levels: int, coarsest: int, finest: int, size: int, outputs: int) -> None:
        super().__init__()
        growth = (finest / coarsest) ** (1 / (levels - 1))
        self.register_buffer("resolutions", torch.tensor([float(int(coarsest * growth**i)) for i in range(levels)]))
        self.tables = nn.Parameter(1e-4 * (2 * torch.rand(levels, size, 2) - 1))
        self.network = nn.Sequential(
            nn.Linear(2 * levels, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs)
        )

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        found = Interpolate.apply(self.tables, places, self.resolutions)
        return self.network(found.permute(1, 0, 2).reshape(len(places), -1))


class Scene(nn.Module):
    """A field, another that proposes where to look, and the box in which most of the scene lies."""

    def __init__(self, centre: torch.Tensor, radius: float, log2_size: int) -> None:
        super().__init__()
        self.register_buffer("centre", centre)
        self.radius = radius
        self.proposal = Field(6, 16, 512, 1 << min(19, log2_size), 1)
        self.field = Field(16, 16, 4096, 1 << log2_size, 4)

    def places(self, points: torch.Tensor) -> torch.Tensor:
        """World coordinates from 0 to 1: the box is the inner half, what is beyond is squeezed into the rest."""
        scaled = (points - self.centre) / self.radius
        size = scaled.abs().amax(dim=-1, keepdim=True).clamp_min(1e-6)
        squeezed = torch.where(size <= 1, scaled, scaled / size * (2 - 1 / size))
        return (squeezed / 4 + 0.5).clamp(0, 1)

    def forward(self, origins: torch.Tensor, directions: torch.Tensor, jitter: bool) -> dict[str, torch.Tensor]:
        """Colours of rays, and what the losses need."""
        count, device = len(origins), origins.device
        near, far = 0.05 * self.radius, 4 * self.radius
        edges = torch.linspace(0, 1, 97, device=device).expand(count, -1)
        if jitter:
            edges = (edges + (torch.rand(count, 1, device=device) - 0.5) / 96).clamp(0, 1)
        depths = near + (far - near) * edges
        proposed = self._weights(self._densities(self.proposal, origins, directions, depths)[..., 0], depths)
        with torch.no_grad():
            fine = resampled(depths, proposed + 1e-3, 49, jitter)
        values = self._densities(self.field, origins, directions, fine)
        weights = self._weights(values[..., 0], fine)
        colours = (weights[..., None] * values[..., 1:].sigmoid()).sum(1) + (1 - weights.sum(1, keepdim=True)) * 0.5
        return {"colours": colours, "depths": fine, "weights": weights, "coarse": depths, "proposed": proposed}

    def _densities(self, field: Field, origins, directions, depths):
        middle = (depths[:, 1:] + depths[:, :-1]) / 2
        points = origins[:, None] + middle[..., None] * directions[:, None]
        return field(self.places(points.reshape(-1, 3))).reshape(*middle.shape, -1)

    def _weights(self, raw: torch.Tensor, depths: torch.Tensor) -> torch.Tensor:
        """(n, k) share of each piece of a ray in its colour."""
        density = (raw.clamp(-15, 15) - 1).exp() / self.radius
        alpha = 1 - (-density * (depths[:, 1:] - depths[:, :-1])).exp()
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], 1), 1)
        return alpha * through


def resampled(edges: torch.Tensor, weights: torch.Tensor, count: int, jitter: bool) -> torch.Tensor:
    """(n, count) depths drawn from the distribution of (n, k) weights between (n, k + 1) depths."""
    total = torch.cumsum(weights / weights.sum(1, keepdim=True), 1)
    total = torch.cat([torch.zeros_like(total[:, :1]), total], 1)
    at = torch.linspace(0, 1 - 1e-5, count, device=edges.device).expand(len(edges), -1)
    if jitter:
        at = (at + (torch.rand_like(at) - 0.5) / count).clamp(0, 1 - 1e-5)
    return interpolated(at.contiguous(), total, edges)


def interpolated(at: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Row by row, the values of y(x) at other places."""
    above = torch.searchsorted(x, at, right=True).clamp(1, x.shape[1] - 1)
    x0, x1 = x.gather(1, above - 1), x.gather(1, above)
    y0, y1 = y.gather(1, above - 1), y.gather(1, above)
    return y0 + (y1 - y0) * ((at - x0) / (x1 - x0).clamp_min(1e-8)).clamp(0, 1)


def proposal_loss(found: dict[str, torch.Tensor]) -> torch.Tensor:
    """How far the proposal falls short of the weights that the field gave (mip-NeRF 360, equation 13)."""
    depths, weights = found["depths"].detach(), found["weights"].detach()
    coarse, proposed = found["coarse"], found["proposed"]
    total = torch.cat([torch.zeros_like(proposed[:, :1]), torch.cumsum(proposed, 1)], 1)
    first = torch.searchsorted(coarse.contiguous(), depths[:, :-1].contiguous(), right=True) - 1
    last = torch.searchsorted(coarse.contiguous(), depths[:, 1:].contiguous())
    last_edge = coarse.shape[1] - 1
    bound = total.gather(1, last.clamp(0, last_edge)) - total.gather(1, first.clamp(0, last_edge))
    return ((weights - bound).clamp_min(0) ** 2 / (weights + 1e-5)).sum(1).mean()


def spread_loss(found: dict[str, torch.Tensor], radius: float) -> torch.Tensor:
    """How far the weights of a ray are spread (mip-NeRF 360, equation 15), which floating fog does most."""
    depths, weights = found["depths"] / radius, found["weights"]
    middle, width = (depths[:, 1:] + depths[:, :-1]) / 2, depths[:, 1:] - depths[:, :-1]
    between = (weights[:, :, None] * weights[:, None, :] * (middle[:, :, None] - middle[:, None, :]).abs()).sum((1, 2))
    return (between + (weights**2 * width).sum(1) / 3).mean()


def train(views: Views, box: tuple[np.ndarray, float], options: argparse.Namespace) -> Scene:
    """A field that explains the views that are not held out."""
    torch.manual_seed(0)
    device = views.images.device
    scene = Scene(torch.tensor(box[0], dtype=torch.float32), box[1], options.log2_size).to(device)
    optimiser = torch.optim.Adam(scene.parameters(), lr=1e-2, betas=(0.9, 0.99), eps=1e-15)
    steps, began = options.steps, time.perf_counter()
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / 100, 1) * 0.03 ** max(0, step / steps - 0.2)
    )
    trained = torch.tensor(views.trained, device=device)
    _, height, width, _ = views.images.shape
    for step in range(steps):
        view = trained[torch.randint(len(trained), (options.rays,), device=device)]
        row = torch.randint(height, (options.rays,), device=device)
        column = torch.randint(width, (options.rays,), device=device)
        found = scene(*views.rays(view, row, column), jitter=True)
        error = ((found["colours"] - views.images[view, row, column]) ** 2).mean()
        loss = error + proposal_loss(found) + 1e-3 * spread_loss(found, scene.radius)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % max(1, steps // 10) == 0 or step == steps - 1:
            print(
                f"  {step:6d}  {-10 * np.log10(error.item()):6.2f} dB  {time.perf_counter() - began:6.1f} s", flush=True
            )
    return scene


@torch.no_grad()
def rendered(scene: Scene, views: Views, view: int, chunk: int = 32768) -> torch.Tensor:
    """(height, width, 3) image of a view."""
    _, height, width, _ = views.images.shape
    row, column = torch.meshgrid(*(torch.arange(n, device=views.images.device) for n in (height, width)), indexing="ij")
    row, column = row.reshape(-1), column.reshape(-1)
    parts = [
        scene(*views.rays(torch.full_like(row[i : i + chunk], view), row[i : i + chunk], column[i : i + chunk]), False)[
            "colours"
        ]
        for i in range(0, len(row), chunk)
    ]
    return torch.cat(parts).reshape(height, width, 3).clamp(0, 1)


def psnr(image: torch.Tensor, truth: torch.Tensor, mask: torch.Tensor) -> float:
    """Peak signal-to-noise ratio in dB over a mask."""
    return float(-10 * torch.log10(((image - truth)[mask] ** 2).mean()))


def seen_by(views: Views, other: Views) -> torch.Tensor:
    """(height, width) which rays of one camera lie within the image of another, which is a pinhole."""
    at, grid = views.directions[..., :2] / views.directions[..., 2:], other.directions
    low, high = grid[0, 0, :2], grid[-1, -1, :2]
    return ((at >= low) & (at <= high)).all(-1)


def scene_box(folder: Path) -> tuple[np.ndarray, float]:
    """Centre and half side of a cube around most of the points of sparse_pc.ply."""
    header, body = (folder / "sparse_pc.ply").read_bytes().split(b"end_header\n", 1)
    vertex = np.dtype([("xyz", "<f4", 3), ("rgb", "u1", 3)])
    points = np.frombuffer(body, vertex)["xyz"]
    if f"element vertex {len(points)}\n".encode() not in header:
        raise SystemExit(f"{folder}: sparse_pc.ply has other properties than x y z red green blue.")
    low, high = np.percentile(points, (1, 99), axis=0)
    return (low + high) / 2, float(1.1 * (high - low).max() / 2)


def main(words: list[str] | None = None) -> dict[str, dict[str, float]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rolling", type=Path, required=True, help="folder of `rssc dataset --for nerfstudio`")
    parser.add_argument("--rectified", type=Path, required=True, help="folder of `rssc dataset --for colmap`")
    parser.add_argument("--ignored", type=Path, help="another for nerfstudio, of a calibration without a shutter")
    parser.add_argument("--truth", type=Path, help="held-out frames of a global shutter, with the lens of the frames")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--rays", type=int, default=8192, help="in each step")
    parser.add_argument("--log2-size", type=int, default=21, help="of each table of the hash grid")
    parser.add_argument("--shrink", type=int, default=1, help="how many pixels become one, across and down")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, help="folder for figures.json and rendered views")
    options = parser.parse_args(words)
    torch.set_float32_matmul_precision("high")

    rolling = load_rolling(options.rolling, options.shrink)
    arms = {
        "rolling": rolling,
        "rectified": load_rectified(options.rectified, options.shrink),
        "ignored in training": rolling.still(),
    }
    if options.ignored is not None:
        arms["ignored throughout"] = load_rolling(options.ignored, options.shrink).still()
    arms = {name: moved(views, options.device) for name, views in arms.items()}
    figures: dict[str, dict[str, float]] = {}
    for name, views in arms.items():
        print(f"{name}: {len(views.trained)} frames to train on, {len(views.held_out)} held out", flush=True)
        scene = train(views, scene_box(options.rolling), options)
        own = [(rendered(scene, views, i), views.images[i]) for i in views.held_out]
        everything = torch.ones_like(views.directions[..., 0], dtype=torch.bool)
        found = {"own_db": float(np.mean([psnr(image, truth, everything) for image, truth in own]))}
        if options.truth is not None:
            # All fields are asked for the same view: the camera of the frames, all rows at the pose of the middle one.
            asked = arms["ignored throughout" if name == "ignored throughout" else "rolling"].still()
            truth = tensor(read_images(options.truth, [asked.names[i] for i in asked.held_out], options.shrink))
            truth, mask = truth.to(options.device), seen_by(asked, arms["rectified"])
            images = [rendered(scene, asked, i) for i in asked.held_out]
            found["truth_db"] = float(np.mean([psnr(a, b, mask) for a, b in zip(images, truth, strict=True)]))
            if options.output is not None:
                options.output.mkdir(parents=True, exist_ok=True)
                for i in (0, len(images) // 2):
                    pixels = (255 * images[i] + 0.5).byte().cpu().numpy()
                    Image.fromarray(pixels).save(options.output / f"{name.replace(' ', '_')}_{asked.held_out[i]}.png")
        figures[name] = found
        print(f"  {name}: {found}", flush=True)
        del scene
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        settings = {"steps": options.steps, "rays": options.rays, "device": device_name(options.device)}
        (options.output / "figures.json").write_text(json.dumps({**settings, "fields": figures}, indent=1) + "\n")
    return figures


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device.startswith("cuda") else device


if __name__ == "__main__":
    main()
