"""Nothing of a user's is lost, and nothing of two runs is mixed: folders, full disks, provenance, matching files."""

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import rssc
from rssc.cli import run
from rssc.errors import InputError, NotCalibratableError
from rssc.footage.fingerprint import names_of, source_fingerprint
from rssc.io.files import finish_moves, staged_file, staged_folder, write_bytes
from rssc.io.stretches_file import fingerprint
from rssc.model import Trajectory
from rssc.model.calibration import Calibration
from rssc.model.provenance import Provenance, SourceRecord
from rssc.outputs import result_folder
from rssc.outputs.result_folder import folder_for, write_results
from rssc.pipeline.options import CalibrateOptions
from rssc.pipeline.provenance import with_provenance
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip
from rssc.simulation.scenes import simulate_scene
from tests.builders import make_calibration, make_camera, make_stretch
from tests.test_calibration_file import schema

ANSWER = ["calibration.json", "points.ply", "report.html", "stretches.npz", "trajectory.tum"]


@pytest.fixture(scope="module")
def calibration():
    return answer_of(2)


def answer_of(seed, source="clip.mp4"):
    scene = simulate_scene(frame_count=8, point_count=30, seed=seed).scene
    scene = replace(scene, trajectory=Trajectory(np.tile(np.eye(3, 4), (12, 1, 1)), -1.0, 0.66))
    return make_calibration(scene.camera, [make_stretch(scene, source=source)])


@pytest.fixture(autouse=True)
def short_reports(monkeypatch):
    """Reports take long to draw; two tests here look at real ones."""
    page = '<meta name="generator" content="rssc">{}'
    monkeypatch.setattr(result_folder, "render_report", lambda found: page.format(found.camera))


@pytest.fixture
def failure(calibration):
    return replace(calibration, stretches=(), status="degenerate", reasons=("it is too dark.",))


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    write_clip(render_clip(ClipOptions(160, 120, 12, seed=1)), folder, video=True)
    return folder / "clip.mp4"


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# What is in an output folder


def test_an_answer_replaces_an_earlier_one_and_nothing_else(calibration, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    write_results(calibration, tmp_path)
    before = contents(tmp_path)
    assert write_results(answer_of(3), tmp_path) == ()
    assert names_in(tmp_path) == sorted([*ANSWER, "notes.txt"])
    assert (tmp_path / "trajectory.tum").read_bytes() != before["trajectory.tum"]
    assert len(Calibration.load(tmp_path / "calibration.json").stretches) == 1


@pytest.mark.parametrize("name", ANSWER)
def test_files_of_the_users_own_are_kept(calibration, tmp_path, name):
    (tmp_path / name).write_text("mine")
    (kept,) = write_results(calibration, tmp_path)
    path = Path(name)
    assert (tmp_path / f"{path.stem}.kept1{path.suffix}").read_text() == "mine"
    assert name in kept and "kept1" in kept
    assert Calibration.load(tmp_path / "calibration.json").stretches
    # One of ours that was changed is the user's, too.
    if name != "report.html":
        (tmp_path / name).write_text("changed")
        assert any(name in sentence for sentence in write_results(calibration, tmp_path))
        assert (tmp_path / f"{path.stem}.kept2{path.suffix}").read_text() == "changed"


def test_a_report_that_was_written_again_is_ours(calibration, tmp_path):
    write_results(calibration, tmp_path)
    rssc.report(tmp_path / "calibration.json")
    assert write_results(replace(calibration, notes=("another",)), tmp_path) == ()
    assert names_in(tmp_path) == ANSWER


def test_a_report_replaces_no_other_file(calibration, tmp_path):
    (tmp_path / "holiday.mp4").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"holiday\.mp4 is there and was not written by rssc report"):
        rssc.report(calibration, tmp_path / "holiday.mp4")
    assert (tmp_path / "holiday.mp4").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["clip.mp4", "truth.json", "trajectory.tum"])
def test_a_rendered_clip_replaces_its_own_kind_only(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"{name} is there and was not written by rssc simulate"):
        rssc.simulate(tmp_path, width=64, height=48, frames=2)
    assert names_in(tmp_path) == [name] and (tmp_path / name).read_text() == "mine"
    (tmp_path / name).unlink()
    for frames in (2, 3):
        rssc.simulate(tmp_path, width=64, height=48, frames=frames)
    assert names_in(tmp_path) == ["clip.mp4", "trajectory.tum", "truth.json"]
    assert json.loads((tmp_path / "truth.json").read_text())["clip"]["frames"] == 3


def test_a_clip_that_is_not_rendered_to_its_end_is_not_there(tmp_path):
    clip = render_clip(ClipOptions(64, 48, 4))

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_clip(clip, tmp_path, report=stop)
    assert names_in(tmp_path) == []


def test_a_failure_leaves_the_users_files_and_earlier_answers(calibration, failure, tmp_path):
    """The case that lost a user's trajectory.tum and points.ply."""
    for name in ("trajectory.tum", "points.ply"):
        (tmp_path / name).write_text("mine")
    assert folder_for(failure, tmp_path) == tmp_path
    write_results(failure, tmp_path)
    assert [(tmp_path / name).read_text() for name in ("trajectory.tum", "points.ply")] == ["mine", "mine"]
    # A later failure replaces it; an answer does, too, and is then replaced by no failure.
    assert folder_for(failure, tmp_path) == tmp_path
    write_results(calibration, tmp_path)
    assert folder_for(failure, tmp_path) == tmp_path / "failed"
    assert folder_for(calibration, tmp_path) == tmp_path
    (tmp_path / "calibration.json").write_text('{"somebody": "else"}')
    assert folder_for(failure, tmp_path) == tmp_path / "failed"


def test_the_command_says_that_the_earlier_answer_stays(calibration, failure, clip, tmp_path, monkeypatch, capsys):
    write_results(calibration, tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr("rssc.api.calibrate", lambda *_, **__: failure)
    assert run(["calibrate", str(clip), "-o", str(tmp_path)]) == 3
    assert "earlier answer" in capsys.readouterr().err
    assert contents_of_files(tmp_path) == before
    assert names_in(tmp_path / "failed") == ["calibration.json", "report.html"]


def contents_of_files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("error", [RuntimeError("a report error"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
@pytest.mark.parametrize("step", ["render_report", "calibration_files", "_keep", "rename"])
def test_a_run_that_ends_before_it_is_done_leaves_what_was_there(calibration, tmp_path, monkeypatch, error, step):
    write_results(calibration, tmp_path)
    (tmp_path / "trajectory.tum").write_text("mine")
    before = contents(tmp_path)

    def fail(*_, **__):
        raise error

    target = Path if step == "rename" else result_folder
    monkeypatch.setattr(target, step, fail)
    named = isinstance(error, OSError) and step in ("_keep", "rename")
    with pytest.raises(InputError if named else type(error)):
        write_results(answer_of(3), tmp_path)
    monkeypatch.undo()
    (tmp_path / "trajectory.kept1.tum").unlink(missing_ok=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("moved", range(6))
def test_moves_that_were_interrupted_are_finished(calibration, tmp_path, monkeypatch, moved):
    """A process that is killed between two renames leaves the whole new answer to whoever comes next."""
    write_results(calibration, tmp_path)
    replace_file, count = Path.replace, 0

    def interrupted(path, target):
        nonlocal count
        count += 1
        if count > moved:
            raise KeyboardInterrupt
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    try:
        write_results(answer_of(3), tmp_path)
    except KeyboardInterrupt:
        assert ".rssc-complete" in names_in(tmp_path)
    monkeypatch.undo()
    (found,) = Calibration.load(tmp_path / "calibration.json").stretches
    np.testing.assert_array_equal(found.scene.points, answer_of(3).stretches[0].scene.points)
    assert names_in(tmp_path) == ANSWER
    stated = json.loads((tmp_path / "calibration.json").read_text())["files"]
    assert all(fingerprint((tmp_path / name).read_bytes()) == value for name, value in stated.items())


def test_files_that_go_with_an_answer_go_when_it_is_complete(tmp_path):
    (tmp_path / "old").write_text("1")
    with pytest.raises(RuntimeError), staged_folder(tmp_path, removed=["old"]):
        raise RuntimeError
    assert names_in(tmp_path) == ["old"]
    with staged_folder(tmp_path, removed=["old"]) as staging:
        (staging / "new").write_text("2")
    assert names_in(tmp_path) == ["new"]
    finish_moves(tmp_path / "nowhere")


def test_bad_input_leaves_no_folder(clip, tmp_path):
    (tmp_path / "broken.mp4").write_bytes(bytes(5000))
    out = tmp_path / "a" / "out"
    assert run(["calibrate", str(tmp_path / "broken.mp4"), "-o", str(out)]) == 2
    assert run(["calibrate", str(clip), "-o", str(clip)]) == 2
    assert run(["calibrate", str(clip), "-o", str(clip / "out")]) == 2
    assert names_in(tmp_path) == ["broken.mp4"]
    with pytest.raises(RuntimeError), staged_file(out / "video.mp4") as path:
        path.write_text("half")
        raise RuntimeError
    assert names_in(tmp_path) == ["broken.mp4"]


def test_a_folder_in_the_place_of_a_file_is_told(calibration, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for write in (calibration.save, lambda place: rssc.report(calibration, place)):
        for place in (".", str(tmp_path)):
            with pytest.raises(InputError, match="is a folder; expected the name of a file"):
                write(place)
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with pytest.raises(InputError, match=r"report\.html is a folder"):
        write_results(calibration, tmp_path / "out")
    assert names_in(tmp_path / "out") == ["report.html"]


def test_our_temporary_names_are_not_told(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / ".rssc-1-x" / "a.bin"))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(InputError, match=r"cannot write .*b\.bin: Permission denied"):
        write_bytes(tmp_path / "b.bin", b"x")


# Full disks


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory):
    """A folder on a disk with hardly any room."""
    folder = tmp_path_factory.mktemp("full")
    command = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)]
    try:
        mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except (OSError, AttributeError):
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_named_and_left_as_it_was(calibration, clip, full_disk):
    out = full_disk / "out"
    with pytest.raises(InputError, match=f"no space is left in {out}"):
        write_results(calibration, out)
    with pytest.raises(InputError, match=rf"no space is left in {full_disk} for data\.bin"):
        write_bytes(full_disk / "data.bin", bytes(100_000))
    with pytest.raises(InputError, match="no space is left"):
        calibration.save(out / "calibration.json")
    with pytest.raises(InputError, match="no space is left"):
        rssc.export(calibration, "colmap", out)
    covered = replace(calibration_of_clip(clip), provenance=Provenance())
    with pytest.raises(InputError, match=rf"no space is left in {out} for rectified\.mp4"):
        rssc.rectify(clip, covered, out / "rectified.mp4")
    with pytest.raises(InputError, match=rf"no space is left in {out} for clip\.mp4"):
        rssc.simulate(out, width=160, height=120, frames=8)
    with pytest.raises(InputError, match=rf"no space is left in {full_disk} for frame_0"):
        rssc.dataset(clip, covered, "nerfstudio", out)
    assert names_in(full_disk) == []


def test_a_disk_that_is_full_is_named_also_where_none_can_be_mounted(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=f"no space is left in {tmp_path} for a\\.txt; make room"):
        write_bytes(tmp_path / "a.txt", b"x")
    assert names_in(tmp_path) == []


def calibration_of_clip(clip):
    """A calibration that covers the clip, of a camera that stands still."""
    camera = make_camera(width=160, height=120)
    scene = simulate_scene(frame_count=12, point_count=30, seed=2).scene
    scene = replace(scene, camera=camera, trajectory=Trajectory(np.tile(np.eye(3, 4), (18, 1, 1)), -1.0, 1.0))
    found = make_calibration(camera, [make_stretch(scene, source=str(clip))])
    return with_provenance(found, (SourceRecord(str(clip), source_fingerprint(clip)),), CalibrateOptions())


# Where a result comes from


def test_a_calibration_says_where_it_comes_from(clip, tmp_path):
    found = with_provenance(
        calibration_of_clip(clip), (SourceRecord("a.mp4", "12"),), CalibrateOptions(fps=30.0, frames=(2, None))
    )
    assert found.provenance.version == rssc.__version__
    assert found.provenance.options["frames"] == [2, None] and "cache" not in found.provenance.options
    write_results(found, tmp_path)
    document = json.loads((tmp_path / "calibration.json").read_text())
    jsonschema.validate(document, schema())
    assert document["provenance"]["sources"] == [{"name": "a.mp4", "fingerprint": "12"}]
    assert document["provenance"]["date"].endswith("Z")
    assert Calibration.load(tmp_path / "calibration.json") == found
    assert f"Made by rssc {rssc.__version__}" in rssc.report(found, tmp_path / "report.html").read_text()
    write_results(found, tmp_path)
    before = contents(tmp_path)
    write_results(found, tmp_path)
    assert contents(tmp_path) == before


def test_fingerprints_are_of_contents(clip, tmp_path):
    (tmp_path / "copy.mov").write_bytes(clip.read_bytes())
    assert source_fingerprint(tmp_path / "copy.mov") == source_fingerprint(clip)
    large = np.random.default_rng(0).bytes(5 << 20)
    for i, place in enumerate((None, 0, len(large) // 2, len(large) - 1)):
        data = bytearray(large)
        if place is not None:
            data[place] ^= 1
        (tmp_path / f"{i}.mp4").write_bytes(data)
    (tmp_path / "4.mp4").write_bytes(large[:-1])
    assert len({source_fingerprint(tmp_path / f"{i}.mp4") for i in range(5)}) == 5


def test_fingerprints_of_folders_are_of_names_and_contents(tmp_path):
    write_clip(render_clip(ClipOptions(64, 48, 3, seed=1)), tmp_path / "a", video=False)
    write_clip(render_clip(ClipOptions(64, 48, 3, seed=1)), tmp_path / "b", video=False)
    first = source_fingerprint(tmp_path / "a")
    assert source_fingerprint(tmp_path / "b") == first
    images = sorted((tmp_path / "b").glob("*.png"))
    images[0].rename(images[0].with_name("x" + images[0].name))
    assert source_fingerprint(tmp_path / "b") != first
    with pytest.raises(InputError, match=r"is not what was calibrated \(a\)"):
        names_of(tmp_path / "b", [SourceRecord("a", first)])


# What does not belong together is refused


def test_only_the_video_that_was_calibrated_is_rectified(clip, tmp_path, capsys):
    calibration_of_clip(clip).save(tmp_path / "calibration.json")
    moved, other = tmp_path / "moved.mp4", tmp_path / "other.mp4"
    moved.write_bytes(clip.read_bytes())
    write_clip(render_clip(ClipOptions(160, 120, 12, seed=2)), tmp_path / "other", video=True)
    (tmp_path / "other" / "clip.mp4").rename(other)
    line = ["rectify", str(other), str(tmp_path / "calibration.json"), "-o", str(tmp_path / "r.mp4")]
    assert run(line) == 2
    said = capsys.readouterr().err
    assert "other.mp4 is not what was calibrated" in said and "--reencoded" in said and said.count("\n") == 1
    assert not (tmp_path / "r.mp4").exists()
    assert run([*line, "--reencoded"]) == 0
    assert run(["rectify", str(moved), *line[2:]]) == 0


def test_rectified_videos_and_images_replace_their_own_kind_only(clip, tmp_path, capsys):
    found = calibration_of_clip(clip)
    for _ in range(2):
        rssc.rectify(clip, found, tmp_path / "r.mkv")
    (tmp_path / "mine.mp4").write_bytes(clip.read_bytes())
    with pytest.raises(InputError, match=r"mine\.mp4 is there and was not written by rssc rectify"):
        rssc.rectify(clip, found, tmp_path / "mine.mp4")
    images = tmp_path / "images"
    write_clip(render_clip(ClipOptions(160, 120, 12, seed=1)), images, video=False)
    names = tuple(path.name for path in sorted(images.glob("*.png")))
    stretch = replace(found.stretches[0], names=names, source=str(images))
    of_images = replace(found, stretches=(stretch,), provenance=Provenance())
    for _ in range(2):
        rssc.rectify(images, of_images, tmp_path / "rectified")
    assert names_in(tmp_path / "rectified") == sorted(names)
    before = (tmp_path / "rectified" / names[0]).read_bytes()
    (tmp_path / "rectified" / names[3]).write_bytes((images / names[3]).read_bytes())
    with pytest.raises(InputError, match=f"{names[3]} is there"):
        rssc.rectify(images, of_images, tmp_path / "rectified", row="first")
    assert (tmp_path / "rectified" / names[0]).read_bytes() == before


def test_stretches_of_another_calibration_are_refused(calibration, tmp_path, capsys):
    for seed, name in ((2, "a"), (3, "b")):
        write_results(answer_of(seed), tmp_path / name)
    (tmp_path / "b" / "stretches.npz").replace(tmp_path / "a" / "stretches.npz")
    path = str(tmp_path / "a" / "calibration.json")
    for words in (
        ["export", path, "--to", "colmap", "-o", str(tmp_path / "e")],
        ["export", path, "--to", "kalibr", "-o", str(tmp_path / "e")],
        ["report", path],
        ["rectify", str(tmp_path), path, "-o", str(tmp_path / "r")],
    ):
        assert run(words) == 2
        said = capsys.readouterr().err
        assert "of another calibration" in said and said.count("\n") == 1
    (tmp_path / "a" / "stretches.npz").unlink()
    assert run(["export", path, "--to", "kalibr", "-o", str(tmp_path / "e")]) == 0


def test_a_report_shows_frames_of_the_calibrated_video_only(clip, tmp_path, capsys):
    copy = tmp_path / "clip.mp4"
    copy.write_bytes(clip.read_bytes())
    calibration_of_clip(copy).save(tmp_path / "calibration.json")
    write_clip(render_clip(ClipOptions(160, 120, 12, seed=2)), tmp_path / "other", video=True)
    copy.write_bytes((tmp_path / "other" / "clip.mp4").read_bytes())
    line = ["report", str(tmp_path / "calibration.json")]
    assert run(line) == 0
    assert "is not what was calibrated" in (tmp_path / "report.html").read_text()
    assert run([*line, "--source", str(clip)]) == 0
    assert "is not what was calibrated" not in (tmp_path / "report.html").read_text()
    capsys.readouterr()
    assert run([*line, "--source", str(copy)]) == 2
    assert "is not what was calibrated" in capsys.readouterr().err


def test_exports_replace_their_own_kind_only(calibration, tmp_path):
    for name in ("colmap", "colmap-text", "opencv", "kalibr", "gsplat", "nerfstudio"):
        for _ in range(2):
            rssc.export(calibration, name, tmp_path / name)
    with pytest.raises(InputError, match=r"transforms\.json is there .* rssc export --to instant-ngp"):
        rssc.export(calibration, "instant-ngp", tmp_path / "nerfstudio")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "cameras.bin").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"cameras\.bin is there"):
        rssc.export(calibration, "colmap", tmp_path / "model")
    assert names_in(tmp_path / "model") == ["cameras.bin"]


def test_not_calibratable_is_still_an_answer_of_its_own(failure, clip, tmp_path, monkeypatch):
    monkeypatch.setattr("rssc.api.calibrate", lambda *_, **__: failure)
    assert run(["calibrate", str(clip), "-o", str(tmp_path / "out")]) == NotCalibratableError.exit_code
    assert names_in(tmp_path / "out") == ["calibration.json", "report.html"]
    assert sys.modules["rssc"].__version__
