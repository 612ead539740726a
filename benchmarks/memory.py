"""The most memory that calibrating and rectifying large videos takes, with all processes that they start.

The videos are made cheaply: a camera moves by hand before textured boards and a wall, each of which is one texture,
warped by the homography of its plane. Their rows are all of one time, as with a global shutter. Memory is what all
processes of a command have at one time (proportional set size, what they share counted once), looked at ten times a
second, with two threads.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.limits import Figures, Limit, check
from benchmarks.processes import MARK, memory_of, processes_of
from rssc.errors import InputError
from rssc.kernels.image.texture import TILE
from rssc.model.arrays import FloatArray
from rssc.runtime.threads import THREADS_VARIABLE
from rssc.simulation.clip_files import write_video
from rssc.simulation.motion import room_motion
from rssc.simulation.texture import random_texture

LIMITS = (
    Limit("full_hd.calibrate_gb", most=1.5, optional=True),
    Limit("full_hd.rectify_gb", most=1.5, optional=True),
    Limit("4k.calibrate_gb", most=2.5, optional=True),
    Limit("4k.rectify_gb", most=2.5, optional=True),
)
"""In units of 1e9 bytes."""
_THREADS = 2
_POLL_SECONDS = 0.1
_POLLS_PER_LIST = 5
"""Looking for processes takes longer than asking them for their memory."""
_FRAMES_PER_SECOND = 30.0
_WALL = (0.0, 0.0, 8.0)
"""Middle of the wall; the camera is near the origin of the room, and looks along +z."""
_WALL_TEXEL_M, _BOARD_TEXEL_M = 0.012, 0.005
"""About a pixel of the smaller video."""
_BOARDS = ((-3.2, -1.0, 6.0), (3.0, 0.7, 5.0), (-0.7, 1.6, 5.0), (1.0, -1.1, 4.0), (-1.5, 0.7, 3.5))
"""Their middles."""


@dataclass(frozen=True)
class Video:
    """A video that is calibrated from."""

    name: str
    width: int
    height: int
    frames: int


VIDEOS = (Video("full_hd", 1920, 1080, 2000), Video("4k", 3840, 2160, 300))


@dataclass(frozen=True)
class Board:
    """A rectangle with a texture."""

    world_from_texels: FloatArray
    """(3, 3) from (column, row, 1) of the texture to a point of the world."""
    texture: NDArray[np.uint8]


def boards() -> list[Board]:
    """A wall and boards before it, the nearest last."""
    draw = np.random.default_rng(0)
    tile = random_texture().texels[: TILE * TILE].reshape(TILE, TILE)
    found = [_board(np.array(_WALL), 0.0, 0.0, _WALL_TEXEL_M, tile)]
    for centre in _BOARDS:
        left, top = draw.integers(0, TILE - 500, 2)
        texture = np.ascontiguousarray(tile[top : top + 350, left : left + 500])
        turn, tilt = draw.uniform(-0.7, 0.7, 2)
        found.append(_board(np.array(centre), turn, tilt, _BOARD_TEXEL_M, texture))
    return found


def _board(centre: FloatArray, turn: float, tilt: float, texel: float, texture: NDArray[np.uint8]) -> Board:
    """A board about a point, turned about the vertical and tilted, with texels of a size in metres."""
    right = np.array((np.cos(turn), 0.0, np.sin(turn)))
    down = np.array((-np.sin(turn) * np.sin(tilt), np.cos(tilt), np.cos(turn) * np.sin(tilt)))
    height, width = texture.shape
    corner = centre - texel * (0.5 * width * right + 0.5 * height * down)
    return Board(np.stack((texel * right, texel * down, corner), axis=1), texture)


def frames(video: Video) -> Iterator[NDArray[np.uint8]]:
    """The grey frames of a video."""
    scene, focal = boards(), 0.8 * video.width
    matrix = np.array(((focal, 0, (video.width - 1) / 2), (0, focal, (video.height - 1) / 2), (0, 0, 1)))
    motion = room_motion("hand_held", np.random.default_rng(3), _FRAMES_PER_SECOND)
    for pose in motion.cam_from_world(np.arange(video.frames)):
        image = np.zeros((video.height, video.width), np.uint8)
        for board in scene:
            _draw(board, matrix @ (pose[:, :3] @ board.world_from_texels + np.outer(pose[:, 3], (0, 0, 1))), image)
        yield image


def _draw(board: Board, homography: FloatArray, image: NDArray[np.uint8]) -> None:
    """Draws a board over an image, by its homography from texels to pixels."""
    height, width = board.texture.shape
    corners = homography @ np.array(((0, width, width, 0), (0, 0, height, height), (1, 1, 1, 1)))
    columns, rows = corners[:2] / corners[2]
    left, right = np.clip((columns.min(), columns.max()), 0, image.shape[1]).astype(int).tolist()
    top, bottom = np.clip((rows.min(), rows.max()), 0, image.shape[0]).astype(int).tolist()
    if left < right and top < bottom:
        shift = np.array(((1.0, 0.0, -left), (0.0, 1.0, -top), (0.0, 0.0, 1.0)))
        cv2.warpPerspective(
            board.texture, shift @ homography, (right - left, bottom - top), image[top:bottom, left:right],
            cv2.INTER_LINEAR, cv2.BORDER_TRANSPARENT,
        )  # fmt: skip


def most_memory(words: list[str], temporary: Path) -> float:
    """The most memory that a command takes, in units of 1e9 bytes."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    environment = {
        **os.environ,
        MARK: mark,
        THREADS_VARIABLE: str(_THREADS),
        "RSSC_CACHE": "",
        "TMPDIR": str(temporary),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "rssc", *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    most = poll = 0
    processes: list[int] = []
    while process.poll() is None:
        if poll % _POLLS_PER_LIST == 0:
            processes = processes_of(mark)
        most, poll = max(most, memory_of(processes)), poll + 1
        time.sleep(_POLL_SECONDS)
    if process.returncode != 0:
        said = process.stderr.read()[-500:] if process.stderr else ""
        raise InputError(f"rssc {' '.join(words)} ended with {process.returncode}: {said}")
    return most / 1e9


def measure(argv: list[str]) -> Figures:
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory", description=__doc__)
    names = [video.name for video in VIDEOS]
    parser.add_argument("--video", choices=names, help="only one of them")
    parser.add_argument("--keep", type=Path, help="folder for the videos, which are used again")
    options = parser.parse_args(argv)
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = options.keep or folder
        kept.mkdir(parents=True, exist_ok=True)
        for video in VIDEOS:
            if options.video not in (None, video.name):
                continue
            path, out = kept / f"{video.name}.mp4", folder / video.name
            if not path.exists():
                write_video(frames(video), path, _FRAMES_PER_SECOND, crf=20, preset="ultrafast")
            commands = {
                "calibrate": ["calibrate", str(path), "-o", str(out)],
                "rectify": [
                    "rectify",
                    str(path),
                    str(out / "calibration.json"),
                    "-o",
                    str(folder / "rectified.mp4"),
                ],
            }
            print(f"{video.name}: {video.frames} frames of {video.width} x {video.height}", flush=True)
            for command, words in commands.items():
                began = time.monotonic()
                gigabytes = most_memory(words, folder)
                figures.setdefault(video.name, {})[f"{command}_gb"] = round(gigabytes, 2)
                print(f"  {command:10s} {gigabytes:5.2f} GB   {time.monotonic() - began:4.0f} s", flush=True)
    return figures


def main(argv: list[str]) -> int:
    return check(measure(argv), LIMITS)
