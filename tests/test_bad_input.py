"""What is wrong with input is told in one clear line, before the work, and never as an error of somebody else's."""

import hashlib
import io
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import cv2
import numpy as np
import pytest
from rich.console import Console

import rssc
from rssc.cli import run
from rssc.cli.terminal import print_document
from rssc.errors import InputError, NotCalibratableError
from rssc.footage.footage import choose_stretches, open_source, read_footage, survey_footage
from rssc.footage.misplaced import find_misplaced
from rssc.io.calibration_file import calibration_document, read_calibration
from rssc.io.camera_file import camera_document
from rssc.io.lens_files import read_lens
from rssc.io.stretches_file import read_stretches
from rssc.io.target_file import read_target
from rssc.io.tum import read_tum
from rssc.outputs.crop import common_window
from rssc.outputs.exporters import write_export
from rssc.outputs.presentation import calibration_html, calibration_text
from rssc.outputs.report import write_report
from rssc.outputs.report.report import render_report
from rssc.outputs.terminal import print_calibration, print_check
from rssc.pipeline.check import Check
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.result import degenerate_result
from rssc.pipeline.several import choose
from rssc.pipeline.verdict import uncertain_parameters
from tests.builders import make_calibration, make_camera, make_covariance, make_stretch
from tests.test_video import panning_images, write_images, write_video

CAMERA = make_camera("radial")
fifos = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A calibration with its stretches."""
    from rssc.simulation.scenes import simulate_scene
    from rssc.solver.problem import with_trajectory

    scene = with_trajectory(simulate_scene(1, frame_count=10, point_count=40).truth)
    calibration = make_calibration(scene.camera, [make_stretch(scene)])
    calibration.save(tmp_path_factory.mktemp("saved") / "calibration.json")
    return calibration


def set_in(document, path, value):
    *groups, last = path
    for group in groups:
        document = document[group]
    document[last] = value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("", "is empty"),
        ("[]", "expected an object"),
        ("null", "expected an object"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
        ('{"format": ' + "9" * 5000 + "}", "a number of 5000 digits"),
        ((("covariance", "matrix"), [[1.0]]), "1 rows with 1 numbers; expected 7 x 7"),
        ((("covariance", "matrix", 0, 0), float("nan")), "it has NaN where a number is expected"),
        ((("covariance", "matrix", 0, 0), -1.0), "negative variance"),
        ((("covariance", "matrix", 0, 1), 0.5), "not symmetric"),
        ((("covariance", "parameters", 0), "fy"), "a parameter twice"),
        ((("covariance", "parameters", 0), "typo"), "'typo', which a radial lens has not"),
        ((("lens", "fx"), 1e300), "fx 1e+300, which no lens has"),
        ((("lens", "distortion"), [0.1]), "calibration.json: a radial lens has 2 distortion coefficients"),
        ((("image", "width"), 10**12), "which no camera has"),
        ((("shutter", "frame_interval_s"), 1e-300), "which no camera has"),
        ((("statistics", "frames"), "many"), "is not a calibration of ours: frames"),
    ],
)
def test_damaged_calibrations(tmp_path, change, words):
    path = tmp_path / "calibration.json"
    make_calibration(CAMERA).save(path)
    text = change
    if not isinstance(change, str):
        document = json.loads(path.read_text())
        set_in(document, *change)
        text = json.dumps(document)
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_calibration(path)
    assert words in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


def test_a_byte_order_mark_is_no_damage(tmp_path):
    path = tmp_path / "calibration.json"
    make_calibration(CAMERA).save(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_calibration(path).camera == CAMERA


def test_stretches_that_are_empty_or_damaged(tmp_path):
    path = tmp_path / "stretches.npz"
    empty = io.BytesIO()
    np.savez(empty)
    for data in (b"", b"PK", empty.getvalue(), os.urandom(500)):
        path.write_bytes(data)
        with pytest.raises(InputError, match="not one of our stretches"):
            read_stretches(path)
    make_calibration(CAMERA).save(tmp_path / "calibration.json")
    path.write_bytes(b"")
    document = json.loads((tmp_path / "calibration.json").read_text())
    document["stretches"] = {"file": path.name, "sha256": hashlib.sha256(b"").hexdigest()}
    (tmp_path / "calibration.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="not one of our stretches"):
        rssc.Calibration.load(tmp_path / "calibration.json")


@pytest.mark.parametrize("text", ["a: &a [1]\nb: *a\n", "a: 2026-13-45\n", "[" * 3000, "a: !!bool x\n", "\x00"])
def test_yaml_that_is_none(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    for read in (read_lens, read_target):
        with pytest.raises(InputError, match=r"a.yaml"):
            read(str(path))


def test_opencv_files_have_five_coefficients(tmp_path):
    """k1 k2 p1 p2 k3, as `cv2.calibrateCamera` gives them."""
    storage = cv2.FileStorage(str(tmp_path / "a.yaml"), cv2.FILE_STORAGE_WRITE)
    storage.write("camera_matrix", np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]]))
    storage.write("distortion_coefficients", np.array([[-0.2, 0.1, 0.001, 0.002, -0.03]]))
    storage.release()
    lens, _ = read_lens(str(tmp_path / "a.yaml"))
    assert lens.model == "full_opencv"
    assert dict(zip(lens.coefficient_names, lens.distortion, strict=True))["k3"] == -0.03


@fifos
def test_pipes_are_not_waited_for(tmp_path):
    for name in ("a.mp4", "a.json", "a.yaml", "a.tum", "stretches.npz"):
        os.mkfifo(tmp_path / name)
    for read in (
        lambda: rssc.check(tmp_path / "a.mp4"),
        lambda: rssc.calibrate(tmp_path / "a.mp4"),
        lambda: rssc.Calibration.load(tmp_path / "a.json"),
        lambda: read_lens(str(tmp_path / "a.yaml")),
        lambda: read_target(str(tmp_path / "a.yaml")),
        lambda: read_tum(tmp_path / "a.tum"),
        lambda: read_stretches(tmp_path / "stretches.npz"),
    ):
        with pytest.raises(InputError, match="a pipe or a device; expected a file"):
            read()
    folder = write_images(tmp_path / "images", [f"{i}.png" for i in range(9)])
    os.mkfifo(folder / "9.png")
    assert len(read_footage(folder, fps=30)) == 9


@contextmanager
def no_privileges():
    """Root may read everything."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_what_may_not_be_read(tmp_path):
    video = write_video(tmp_path / "a.mp4", panning_images(12), list(range(12)))
    folder = write_images(tmp_path / "images", [f"{i}.png" for i in range(9)])
    closed = write_images(tmp_path / "closed", [f"{i}.png" for i in range(9)])
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    for path in (video, *folder.iterdir(), closed):
        path.chmod(0)
    with no_privileges():
        for source in (video, folder, closed):
            with pytest.raises(InputError, match=r"cannot read .*: permission denied"):
                open_source(source, 30.0)
    closed.chmod(0o755)


def test_animations_are_videos(tmp_path):
    images = panning_images(12)
    gif = write_animation(tmp_path / "a.gif", images)
    assert len(read_footage(gif)) == 12
    assert read_footage(gif).frame_interval_s == pytest.approx(1 / 25)
    assert len(read_footage(write_animation(tmp_path / "a.png", images))) == 12
    with pytest.raises(InputError, match="animated WebP"):
        open_source(write_animation(tmp_path / "a.webp", images), None)
    for name in ("a.gif", "a.png", "a.webp", "a.jpg"):
        cv2.imwrite(str(tmp_path / f"still_{name}"), cv2.cvtColor(images[0], cv2.COLOR_GRAY2BGR))
        with pytest.raises(InputError, match="is a still photo"):
            open_source(tmp_path / f"still_{name}", None)


def write_animation(path, images):
    animation = cv2.Animation()
    animation.frames = [cv2.cvtColor(image, cv2.COLOR_GRAY2BGR) for image in images]
    animation.durations = np.full(len(images), 40, np.int32)
    assert cv2.imwriteanimation(str(path), animation)
    return path


def test_folders_of_other_images(tmp_path):
    assert len(read_footage(write_images(tmp_path / "webp", [f"{i}.webp" for i in range(9)]), fps=30)) == 9
    floats = tmp_path / "floats"
    floats.mkdir()
    for i, image in enumerate(panning_images(9)):
        cv2.imwrite(str(floats / f"{i}.tif"), image.astype(np.float32) / 255)
    with pytest.raises(InputError, match=r"0\.tif has 32-bit floating-point values.*8 or 16 bits"):
        read_footage(floats, fps=30)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.dng").write_bytes(b"")
    with pytest.raises(InputError, match=r"it has \.dng files"):
        read_footage(tmp_path / "raw", fps=30)


def test_a_gap_in_counters_cuts_the_clip(tmp_path):
    names = [f"{i + 500 * (i >= 25):05d}.png" for i in range(50)]
    folder = write_images(tmp_path / "images", names, panning_images(50))
    ranges, _ = choose_stretches(folder, fps=30)
    survey = survey_footage(folder, ranges, fps=30)
    assert survey.pieces == ((0, 25), (25, 50))
    assert "500 frames are missing before frame 25" in survey.findings[0].words
    short = write_images(tmp_path / "short", [f"{i + 500 * (i >= 6):05d}.png" for i in range(12)])
    with pytest.raises(InputError, match="leave no 8 frames together"):
        rssc.check(short, fps=30)


def test_a_frame_out_of_order_is_left_out(tmp_path):
    images = panning_images(40, step=3.0)
    assert not find_misplaced(np.stack(images)).any()
    moved = [*images[:15], *images[16:28], images[15], *images[28:]]
    folder = write_images(tmp_path / "images", [f"{i:03d}.png" for i in range(40)], moved)
    footage = read_footage(folder, fps=30)
    assert 27 not in footage.frame_numbers and len(footage) == 39
    assert any("frame 27 shows a picture of another time" in note for note in footage.notes)


def test_clips_are_compared_before_the_work(tmp_path):
    names = [f"{i}.png" for i in range(12)]
    one = write_images(tmp_path / "one", names)
    other = write_images(tmp_path / "other", names, [image[79::-1, 99::-1].copy() for image in panning_images(12)])
    options = CalibrateOptions(fps=30.0)
    chosen, notes = choose([one, one], options)
    assert len(chosen) == 1 and "one was given twice, and is used once" in notes[0]
    with pytest.raises(InputError, match=r"100 x 80 and .* pixels; expected one camera in one mode"):
        choose([one, other], options)


def test_a_start_is_looked_at_before_the_work(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("rssc.pipeline.stretch.track", lambda *_, **__: pytest.fail("this is work"))
    video = write_video(tmp_path / "a.mp4", panning_images(12), list(range(12)))
    with pytest.raises(InputError, match="holds no COLMAP model"):
        rssc.calibrate(video, init=tmp_path / "none")
    write_export(saved, "colmap", tmp_path / "model")
    with pytest.raises(InputError, match=r"is of images of 1280 x 1024 pixels; these have .* Run COLMAP"):
        rssc.calibrate(video, init=tmp_path / "model")
    images = write_images(tmp_path / "images", [f"{i}.png" for i in range(9)])
    with pytest.raises(InputError):
        rssc.calibrate(images, fps=30, init=tmp_path / "model")


def test_damaged_models_do_not_hang(saved, tmp_path, monkeypatch):
    from rssc.start import colmap

    monkeypatch.setattr(colmap, "COLMAP", replace(colmap.COLMAP, read_seconds=3.0))
    write_export(saved, "colmap", tmp_path)
    data = (tmp_path / "images.bin").read_bytes()
    (tmp_path / "images.bin").write_bytes(b"\xff" * 7 + data[7:])
    with pytest.raises(InputError, match="cannot be read"):
        colmap.read_model(tmp_path)


def placeholder():
    images = np.stack(panning_images(12))
    footage = read_footage_of(images)
    return degenerate_result(footage, NotCalibratableError("the camera hardly moved"))


def read_footage_of(images):
    from rssc.footage.footage import Footage

    count = len(images)
    return Footage(images, np.arange(count) / 30, np.arange(count), tuple(map(str, range(count))))


def test_a_clip_that_cannot_be_told_has_no_numbers(tmp_path):
    found = placeholder()
    page = render_report(found).split("<main>")[1].split("<script")[0]
    assert "the camera hardly moved" in page and "What to record" in page
    for word in ("0.00000", "Focal length", "placeholder", "0 observations", "pinhole", "Do not use"):
        assert word not in page
    assert " 0 frames" not in render_report(found).split("<body>")[1].split("<main>")[0]
    for text in (calibration_text(found), calibration_html(found)):
        assert "the camera hardly moved" in text and "Focal" not in text and "pinhole" not in text
    found.save(tmp_path / "calibration.json")
    (tmp_path / "truth.json").write_text(json.dumps(camera_document(found.camera, 1 / 30)))
    with pytest.raises(InputError, match=r"degenerate.*the camera hardly moved"):
        rssc.evaluate(tmp_path / "calibration.json", tmp_path / "truth.json")
    known = make_calibration(found.camera)
    with pytest.raises(InputError, match="degenerate calibration"):
        rssc.evaluate(known, tmp_path / "calibration.json")
    with pytest.raises(InputError, match="no camera to export"):
        rssc.export(found, "opencv", tmp_path)


def test_names_that_are_no_utf8(saved, tmp_path, capsys):
    name = os.fsdecode(b"caf\xe9.mp4")
    stretch = replace(saved.stretches[0], source=name)
    found = replace(saved, stretches=(stretch,), notes=(f"{name} was used.",))
    found.save(tmp_path / "calibration.json")
    write_report(found, tmp_path / "report.html")
    assert "caf?.mp4 was used" in (tmp_path / "report.html").read_text()
    assert rssc.Calibration.load(tmp_path / "calibration.json").notes == ("caf?.mp4 was used.",)
    print_calibration(Console(), found)
    print_document({**calibration_document(found), "folder": name})
    assert capsys.readouterr().out.count("caf?.mp4") >= 3


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_sources_whose_names_are_no_utf8(tmp_path):
    video = write_video(tmp_path / "a.mp4", panning_images(12), list(range(12)))
    assert len(read_footage(video.rename(tmp_path / os.fsdecode(b"caf\xe9.mp4")))) == 12
    folder = write_images(tmp_path / "images", [f"{i}.png" for i in range(9)])
    folder = folder.rename(tmp_path / os.fsdecode(b"\xe9"))
    for file in sorted(folder.iterdir()):
        file.rename(folder / os.fsdecode(b"\xe9" + file.name.encode()))
    assert read_footage(folder, fps=30).names[0] == "?0.png"


def test_tools_of_one_file_name_do_not_replace_each_other(saved, tmp_path):
    write_export(saved, "nerfstudio", tmp_path)
    write_export(saved, "nerfstudio", tmp_path)
    with pytest.raises(InputError, match="was not written by rssc export --to instant-ngp"):
        write_export(saved, "instant-ngp", tmp_path)
    (tmp_path / "transforms.json").write_text("{}")
    (tmp_path / "sparse_pc.ply").unlink()
    with pytest.raises(InputError, match="was not written by rssc export --to nerfstudio"):
        write_export(saved, "nerfstudio", tmp_path)


def test_a_check_has_one_error_bar():
    camera, rough = CAMERA, make_covariance(CAMERA, readout_ratio=0.06)
    expected = replace(rough, matrix=rough.matrix / 9)
    reason = next(one for one in uncertain_parameters(camera, expected)[1] if "readout" in one)
    said = io.StringIO()
    console = Console(file=said, width=200)
    print_check(console, Check("weak", (reason,), camera, rough.sigma("readout_ratio")))
    assert "+-0.039" in reason and "a calibration: about +- 0.0392" in said.getvalue()


def test_the_common_window_is_what_all_frames_saw():
    v, u = np.mgrid[0:100, 0:120].astype(np.float32)
    maps = [np.stack([u + 5, v], axis=2), np.stack([u, v - 7], axis=2)]
    window = common_window(maps)
    assert window == (0, 8, 114, 92)
    with pytest.raises(InputError, match="no more than"):
        common_window([*maps, np.full_like(maps[0], -1e4)])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "clip.mp4", "--frames", "100:200"], "frames 100:200 of clip.mp4 are 0 frames"),
        (["simulate", "-o", "out", "--width", "0"], "the image size is 0 x 480"),
        (["simulate", "-o", "full", "--images"], "already has images"),
        (["export", "none.json", "--to", "opencv", "-o", "out"], "cannot read none.json: no such file or directory"),
        (["export", ".", "--to", "opencv", "-o", "out"], ". is a folder; expected a file"),
    ],
)
def test_mistakes_are_one_line(words, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / "clip.mp4", panning_images(12), list(range(12)))
    write_images(tmp_path / "full", ["0.png"])
    assert run(words) == 2
    said = capsys.readouterr()
    assert message in said.err and said.err.count("rssc: ") == 1


def test_a_wrong_number_of_threads_is_one_line(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RSSC_THREADS", "abc")
    video = write_video(tmp_path / "a.mp4", panning_images(12), list(range(12)))
    assert run(["check", str(video)]) == 2
    assert "RSSC_THREADS is 'abc'; expected a whole number" in capsys.readouterr().err


def test_kernels_without_a_place_say_so_once(tmp_path):
    """As from a read-only installation, of a user without a home; a process that it starts shares the folder."""
    code = (
        "import os, subprocess, sys; os.access = lambda *_: False\n"
        "from rssc.kernels.compiled_code import cache_folder; folder = cache_folder()\n"
        "child = 'from rssc.kernels.compiled_code import cache_folder; print(cache_folder().parent)'\n"
        "done = subprocess.run([sys.executable, '-c', child], capture_output=True, text=True)\n"
        "assert done.stdout.strip() == str(folder) and not done.stderr, done\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "NUMBA_CACHE_DIR")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**environment, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1 and str(tmp_path) in done.stderr
