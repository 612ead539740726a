"""Catalogs: clips found, grouped, combined with outliers named; work that is resumed, crashes, or loses its worker."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rssc
from rssc.errors import InputError
from rssc.fleet import catalog as flow
from rssc.fleet.combination import common_model, conclude
from rssc.fleet.entry import Catalog, Entry, Line, folder_names
from rssc.fleet.estimate import Estimate, estimate_of
from rssc.fleet.files import camera_cells, opendronemap_entries
from rssc.fleet.grouping import Mode, group
from rssc.fleet.options import CatalogOptions
from rssc.fleet.record import ClipRecord, read_record, write_record
from rssc.fleet.sources import Clip, find_clips
from rssc.fleet.work import AgainTask, ClipTask, infer_again, measure_clip
from rssc.inference.infer import infer
from rssc.io.calibration_file import read_calibration
from rssc.model.camera import ActiveArea
from rssc.model.metadata import Metadata
from rssc.runtime.cluster import run_on_cluster
from rssc.runtime.memory import bounded_memory
from rssc.runtime.pool import WorkerDiedError
from rssc.runtime.slots import Outcome, run_apart
from rssc.simulation.scenes import simulate_scene
from rssc.solver.problem import with_trajectory
from tests.builders import make_calibration, make_stretch
from tests.fleet_tasks import KINDS, work

NAMES = ("fx", "fy", "cx", "cy", "readout_ratio")
TRUTH = np.array([300.0, 300.0, 160.0, 120.0, 0.5])
SIGMAS = np.array([0.5, 0.5, 0.5, 0.5, 0.001])
PHONE = Metadata(make="Maker", model="Phone", lens="wide", stabilisation="off")


def make_estimate(values=TRUTH, sigmas=SIGMAS, model="pinhole", **changes) -> Estimate:
    covariance = tuple(tuple(row) for row in np.diag(np.square(sigmas)).tolist())
    common = tuple(tuple(row) for row in np.diag(np.square(0.2 * sigmas)).tolist())
    found = Estimate(
        model, "rows", (320, 240), NAMES, tuple(map(float, values)), covariance, common, 1 / 30,
        {"pinhole": 0.0, "radial": 3.0}, {"rows": 0.0, "columns": 900.0},
    )  # fmt: skip
    return replace(found, **changes)


def make_record(number: int, values=TRUTH, **changes) -> ClipRecord:
    record = ClipRecord(
        f"clip{number}.mp4", "calibrated", "options", f"print{number}", "ok", metadata=PHONE, size=(320, 240),
        interval_s=1 / 30, estimates=(make_estimate(values),), frames=40, points=100, observations=3000,
        folder=f"print{number}",
    )  # fmt: skip
    return replace(record, **changes)


def shifted(parameter: int, by: float) -> np.ndarray:
    return TRUTH + by * (np.arange(5) == parameter)


def drawn_records(count: int, seed=0) -> list[ClipRecord]:
    rng = np.random.default_rng(seed)
    return [make_record(i, TRUTH + SIGMAS * rng.standard_normal(5)) for i in range(count)]


def made_up_catalog() -> Catalog:
    """Three cameras, one of which nothing is known of, an outlier, and a name that would be markup."""
    modes = [
        Mode("Maker <b>Phone</b>", "file", "wide, stabilisation off", (1920, 1080), 30.0),
        Mode("Action 10", "table", "", (3840, 2160), 59.94),
        Mode("card3", "folder", "", (1280, 720), 25.0),
    ]
    still = replace(make_record(0), status="degenerate", estimates=(), reasons=("the camera hardly moved",))
    records = [
        [*drawn_records(3), make_record(7, shifted(4, 0.2), name="other.mp4")],
        [make_record(i, TRUTH * (3, 3, 3, 3, 0.2)) for i in range(2)],
        [still],
    ]
    entries = []
    for mode, name, of in zip(modes, folder_names(modes), records, strict=True):
        found = conclude(of, {}, Metadata(model=mode.camera))
        lines = tuple(
            Line(one.name, mode.camera, mode.words, one, one.fingerprint in found.used,
                 found.left_out.get(one.fingerprint, "; ".join(one.reasons))) for one in of
        )  # fmt: skip
        entries.append(Entry(mode, name, found, lines, {}))
    return Catalog(tuple(entries), tuple(line for entry in entries for line in entry.lines))


# Finding and grouping.


def test_clips_are_found_in_folders_and_named_by_a_table(tmp_path):
    for name in ("a/one.mp4", "a/b/two.MOV", "a/notes.txt", "a/.hidden/three.mp4", "apart/four.mkv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    table = tmp_path / "clips.csv"
    table.write_text("Path,Camera,Mode\na/one.mp4,Rig 1,4K\napart/four.mkv,Rig 2,\n")
    clips = find_clips([tmp_path / "a", tmp_path / "a" / "one.mp4"], table)
    assert [(one.path.name, one.camera, one.mode, one.folder) for one in clips] == [
        ("two.MOV", "", "", "b"), ("one.mp4", "Rig 1", "4K", "a"), ("four.mkv", "Rig 2", "", "apart"),
    ]  # fmt: skip
    for text, words in (
        ("path,kind\n", "expected path, and camera or mode"), ("path,camera\nnone.mp4,x\n", "line 2 .* not exist"),
        ("path,camera\n,x\n", "line 2 .* names no path"),
    ):  # fmt: skip
        table.write_text(text)
        with pytest.raises(InputError, match=words):
            find_clips([], table)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there is no video in"):
        find_clips([tmp_path / "empty"])


def test_groups_are_of_one_camera_size_rate_and_setting():
    said = [PHONE, replace(PHONE, stabilisation="electronic"), PHONE, PHONE, Metadata(), Metadata(), PHONE]
    sizes = [(320, 240)] * 2 + [(640, 360)] + [(320, 240)] * 4
    rates = [30.0, 30.0, 30.0, 29.97, 30.0, 25.0, 59.94]
    clips = [Clip(Path(f"{i}.mp4"), folder="card") for i in range(7)] + [Clip(Path("7.mp4"), "Maker Phone", "special")]
    records = [
        make_record(i, metadata=one, size=size, interval_s=1 / rate)
        for i, (one, size, rate) in enumerate(zip(said, sizes, rates, strict=True))
    ]
    records.append(make_record(7))
    unreadable = ClipRecord("8.mp4", "unreadable")
    groups = group([*clips, Clip(Path("8.mp4"))], [*records, unreadable])
    members = sorted(sorted(one.name for one in found.records) for found in groups)
    assert members == [["clip0.mp4", "clip3.mp4"], *([f"clip{i}.mp4"] for i in (1, 2, 4, 5, 6, 7))]
    words = {found.records[0].name: found.mode for found in groups}
    assert words["clip1.mp4"].words == "320 x 240, 30/s, wide, electronic stabilisation on"
    assert (words["clip4.mp4"].camera, words["clip4.mp4"].named_by) == ("card", "folder")
    assert (words["clip7.mp4"].camera, words["clip7.mp4"].settings) == ("Maker Phone", "special")


# Combination.


def test_clips_of_one_camera_are_combined_with_smaller_bars():
    misses = []
    for seed in range(40):
        found = conclude(drawn_records(6, seed), {}, PHONE)
        assert (found.status, len(found.used), found.left_out) == ("ok", 6, {})
        calibration = found.calibration
        assert calibration.sigma("fx") < 0.45
        misses.append((calibration.camera.lens.fx - 300) / calibration.sigma("fx"))
    assert np.mean(np.abs(misses) < 1.96) >= 0.85


def test_outliers_are_named_and_do_not_move_the_rest():
    records = drawn_records(5)
    records += [make_record(5, TRUTH * (1.2, 1.2, 1, 1, 1)), make_record(6, shifted(4, 0.2))]
    found = conclude(records, {}, PHONE)
    assert found.used == {f"print{i}" for i in range(5)}
    assert "fx 360.0, where the others have 299.9" in found.left_out["print5"]
    assert "readout ratio 0.700, where the others have 0.50" in found.left_out["print6"]
    assert found.status == "ok"
    np.testing.assert_allclose(found.calibration.camera.lens.fx, 300, atol=1)


def test_small_differences_widen_the_bars_and_name_nobody():
    records = [make_record(i, shifted(0, 3.0 * i)) for i in range(3)]  # 1 % from clip to clip
    found = conclude(records, {}, PHONE)
    assert len(found.used) == 3
    assert found.calibration.sigma("fx") > 1.0
    assert found.status == "weak"
    assert "clips disagree by more than their error bars (fx 300.0 to 306.0)" in found.reasons


def test_without_a_majority_nobody_is_right():
    records = [make_record(0), make_record(1, TRUTH * (1.3, 1.3, 1, 1, 1))]
    found = conclude(records, {}, PHONE)
    assert found.status == "degenerate"
    assert "no majority agrees (fx 300.0 to 390.0)" in found.reasons[0]
    assert len(found.used) == 2


def test_weak_clips_count_only_where_none_is_ok():
    weak = replace(make_record(8, TRUTH * 1.1), status="weak", reasons=("vibration",))
    nothing = replace(make_record(9), status="degenerate", estimates=(), reasons=("the camera hardly moved",))
    found = conclude([*drawn_records(2), weak, nothing], {}, PHONE)
    assert found.used == {"print0", "print1"}
    assert found.left_out == {"print8": "weak by itself, and other clips are ok"}
    alone = conclude([weak, nothing], {}, PHONE)
    assert (alone.status, alone.used, alone.reasons[0]) == ("weak", {"print8"}, "vibration")
    none = conclude([nothing], {}, PHONE)
    assert (none.status, none.calibration, none.reasons) == ("degenerate", None, ("the camera hardly moved",))


def test_one_clip_is_what_it_was_and_rates_are_brought_together():
    estimate = make_estimate()
    found = conclude([make_record(0)], {}, PHONE).calibration
    assert found.sigma("fx") == pytest.approx(np.sqrt(estimate.own[0][0] + estimate.common[0][0]))
    slower = make_estimate(TRUTH * (1, 1, 1, 1, 29.97 / 30), frame_interval_s=1 / 29.97)
    both = conclude([make_record(0), make_record(1, estimates=(slower,))], {}, PHONE).calibration
    assert both.readout_time_s == pytest.approx(0.5 / 30, rel=1e-6)


def test_a_clip_of_another_camera_does_not_choose_the_lens():
    loud = make_estimate(model="radial", lenses={"pinhole": 1e5, "radial": 0.0})
    records = [make_record(i, estimates=(make_estimate(lenses={"pinhole": 0.0, "radial": 40.0}),)) for i in range(4)]
    assert common_model([*records, make_record(9, estimates=(loud,))]).model == "pinhole"
    several = [make_record(i, estimates=(loud,)) for i in range(4)]
    assert common_model([records[0], *several]).model == "radial"


# Work: processes and clusters.


def check_outcomes(outcomes):
    found = {one.index: one for one in outcomes}
    assert sorted(found) == list(range(len(KINDS)))
    assert [found[i].result for i in (0, 3, 4, 5)] == ["fine", "crash once", "wait", "fine"]
    assert isinstance(found[1].error, ArithmeticError)
    assert isinstance(found[2].error, WorkerDiedError)


def test_what_dies_or_crashes_costs_its_own_task_only(tmp_path):
    shares = []
    tasks = [(kind, tmp_path / str(i)) for i, kind in enumerate(KINDS)]
    outcomes = list(run_apart(work, tasks, 2, shares.append))
    check_outcomes(outcomes)
    assert shares[-1] == pytest.approx(1.0)
    error = next(one.error for one in outcomes if one.index == 2)
    assert "was killed by signal 9" in str(error)


def test_a_cluster_gives_the_same_outcomes_while_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed; pip install '.[test]'")
    tasks = [(kind, tmp_path / str(i)) for i, kind in enumerate(KINDS)]
    # The one that dies takes a worker with it each time, with what waits there or was done there.
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:  # fmt: skip
        check_outcomes(run_on_cluster(work, tasks, cluster.scheduler_address, shared=tmp_path))
    assert not list(tmp_path.glob(".rssc-*"))


def test_memory_of_a_worker_is_bounded():
    before = np.zeros(1)
    with bounded_memory(int(1e9)), pytest.raises(MemoryError):
        np.zeros(int(4e9), np.uint8)
    assert before.nbytes
    np.zeros(int(2e9), np.uint8)  # never touched, so that it takes no room


# The whole, with a calibration that takes no time.


def fake_measure(task: ClipTask) -> ClipRecord:
    """Stands for `measure_clip`: what a clip tells is in its name."""
    kept = read_record(task.folder / task.path.stem, task.made_with)
    if kept is not None:
        return kept
    kind, number = task.path.stem.split("_")
    if kind == "crash":
        raise ArithmeticError("a fault")
    if kind == "broken":
        return ClipRecord(str(task.path), "unreadable", task.made_with, reasons=("it is damaged.",))
    values = TRUTH * (1.2, 1.2, 1, 1, 1) if kind == "other" else TRUTH
    record = make_record(int(number), values, name=str(task.path), made_with=task.made_with, fingerprint=task.path.stem)
    if kind == "twin":
        record = replace(record, fingerprint="fine_0")
    if kind == "still":
        record = replace(record, status="degenerate", estimates=(), outcome="not_calibratable", reasons=("it stands",))
    folder = task.folder / task.path.stem
    folder.mkdir(parents=True)
    (folder / "made").touch()
    write_record(folder, record)
    return record


def run_here(function, tasks, workers, report):
    """Stands for `run_apart`, whose processes take seconds to start."""
    for i, task in enumerate(tasks):
        try:
            yield Outcome(i, function(task))
        except ArithmeticError as error:
            yield Outcome(i, error=error)


@pytest.fixture
def clips(tmp_path, monkeypatch):
    monkeypatch.setattr(flow, "measure_clip", fake_measure)
    monkeypatch.setattr(flow, "run_apart", run_here)
    folder = tmp_path / "clips"
    folder.mkdir()
    for i, kind in enumerate(("fine", "fine", "fine", "other", "still", "broken", "crash", "twin")):
        (folder / f"{kind}_{i}.mp4").write_bytes(kind.encode())
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_catalog_names_every_failure_and_loses_nothing(clips, tmp_path):
    out = tmp_path / "out"
    found = rssc.catalog(clips, out, jobs=2)
    assert found.calibrated == 1
    (row,) = rows_of(out / "catalog.csv")
    assert (row["camera"], row["verdict"], row["clips"], row["used"]) == ("Maker Phone", "ok", "5", "3")
    assert float(row["readout_ms"]) == pytest.approx(500 / 30)
    assert float(row["fx"]) == pytest.approx(300)
    lines = {Path(line["path"]).stem: line for line in rows_of(out / "clips.csv")}
    assert len(lines) == 8
    assert [name for name, line in lines.items() if line["used"] == "yes"] == ["fine_0", "fine_1", "fine_2"]
    for name, words in {
        "other_3": "an outlier", "still_4": "it stands", "broken_5": "damaged", "crash_6": "a fault of rssc",
        "twin_7": "a copy of",
    }.items():  # fmt: skip
        assert words in lines[name]["why_not"]
    assert lines["crash_6"]["outcome"] == "crashed"
    document = json.loads((out / "catalog.json").read_text())
    assert document["format"] == "rssc-catalog"
    assert len(document["clips"]) == 8
    folder = out / document["cameras"][0]["folder"]
    calibration = read_calibration(folder / "calibration.json")
    assert [one.fingerprint for one in calibration.provenance.sources] == ["fine_0", "fine_1", "fine_2"]
    profile = json.loads((folder / "gyroflow_lens_profile.json").read_text())
    assert (profile["camera_brand"], profile["camera_model"], profile["lens_model"]) == ("Maker", "Phone", "wide")
    assert profile["frame_readout_time"] == pytest.approx(500 / 30)
    assert "--rolling-shutter-readout 16.6667" in (folder / "opendronemap.txt").read_text()
    # As a line of a Python dictionary, which OpenDroneMap's list is.
    entries = (out / "opendronemap_entries.txt").read_text()
    assert eval("{" + entries + "}") == {"maker phone": 16.67}


def test_a_second_run_continues_and_other_options_begin_again(clips, tmp_path):
    out = tmp_path / "out"
    rssc.catalog(clips, out, jobs=1)
    made = {path: path.stat().st_mtime_ns for path in out.glob("clips/*/made")}
    assert len(made) == 6
    (clips / "fine_9.mp4").write_bytes(b"new")
    found = rssc.catalog(clips, out, jobs=1)
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert found.entries[0].used == 4
    task = ClipTask(clips / "fine_0.mp4", out / "clips", "auto", True, None)
    assert read_record(out / "clips" / "fine_0", task.made_with) is not None
    assert read_record(out / "clips" / "fine_0", replace(task, lens="radial").made_with) is None


def test_a_cluster_makes_the_same_catalog(clips, tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed; pip install '.[test]'")
    rssc.catalog(clips, tmp_path / "here", jobs=1)
    with distributed.LocalCluster(n_workers=1, processes=False, threads_per_worker=1, dashboard_address=None) as one:
        rssc.catalog(clips, tmp_path / "there", scheduler=one.scheduler_address)
    here, there = ((tmp_path / name / "catalog.csv").read_text() for name in ("here", "there"))
    assert here == there


def test_nothing_of_the_users_is_replaced(clips, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "catalog.csv").write_text("mine")
    with pytest.raises(InputError, match=r"catalog.csv is there and was not written by rssc catalog"):
        rssc.catalog(clips, out)
    assert [path.name for path in out.iterdir()] == ["catalog.csv"]


def test_a_camera_that_is_gone_loses_its_files_and_no_others(clips, tmp_path):
    out = tmp_path / "out"
    rssc.catalog(clips, out, jobs=1)
    (folder,) = (out / "cameras").iterdir()
    (folder / "mine.txt").write_text("mine")
    table = tmp_path / "clips.csv"
    table.write_text("path,camera\n" + "".join(f"{path},Rig\n" for path in clips.iterdir()))
    found = rssc.catalog(clips, out, table=table, jobs=1)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert (out / "cameras" / found.entries[0].name / "calibration.json").exists()
    assert camera_cells(found.entries[0])["camera"] == "Rig"
    assert "'" not in opendronemap_entries(found).split("\n", 2)[2]  # a table's name is not that in photos


# Estimates, from a simulated scene.


@pytest.fixture(scope="module")
def inference():
    simulated = simulate_scene(1, frame_count=20, point_count=150, readout_ratio=0.6, pixel_noise=0.03)
    return infer(with_trajectory(simulated.scene), lens="pinhole", rough=False)


def test_an_estimate_has_the_covariance_of_its_inference(inference):
    camera = inference.adjustment.scene.camera
    found = estimate_of(inference, camera, 1 / 30)
    total = found.own_covariance.matrix + found.common_covariance.matrix
    np.testing.assert_allclose(total, inference.covariance.matrix, rtol=1e-9)
    assert found.camera == camera
    # Rows count over the whole image, also where a third of it is black bars.
    area = ActiveArea(0, camera.height // 6, camera.width, 2 * (camera.height // 3))
    barred = estimate_of(inference, replace(camera, active=area), 1 / 30)
    factor = camera.height / area.height
    assert barred.camera.shutter.readout_ratio == pytest.approx(factor * camera.shutter.readout_ratio)
    assert barred.own_covariance.sigma("readout_ratio") == pytest.approx(
        factor * found.own_covariance.sigma("readout_ratio")
    )


def test_a_kept_clip_gets_the_lens_of_the_others_without_its_video(inference, tmp_path):
    scene = inference.adjustment.scene
    record = make_record(0, estimates=(estimate_of(inference, scene.camera, 1 / 30),))
    make_calibration(scene.camera, [make_stretch(scene)]).save(tmp_path / "print0" / "calibration.json")
    task = AgainTask(record, tmp_path, "auto", "radial", "rows", 0.6, None)
    again = infer_again(task)
    (found,) = again.estimates
    assert found.parameters == ("fx", "fy", "cx", "cy", "k1", "k2", "readout_ratio")
    before = record.estimates[0].camera
    assert found.camera.shutter.readout_ratio == pytest.approx(before.shutter.readout_ratio, abs=0.005)
    assert found.camera.lens.fx == pytest.approx(before.lens.fx, rel=0.005)
    (tmp_path / "print0" / "calibration.json").unlink()
    assert infer_again(task) == again
    assert isinstance(infer_again(replace(task, axis="columns")), str), "a reason, not an error"


def test_options_say_what_they_expect():
    with pytest.raises(InputError, match="lens is 'round'"):
        CatalogOptions(lens="round")
    with pytest.raises(InputError, match=r"memory is 0.1 GB; expected at least 0.5"):
        CatalogOptions(memory=0.1)
    with pytest.raises(InputError, match="jobs are 0"):
        rssc.catalog([], "out", jobs=0)


def test_a_damaged_clip_is_an_answer_and_is_kept(tmp_path):
    path = tmp_path / "broken.mp4"
    path.write_bytes(b"\0" * 1000)
    task = ClipTask(path, tmp_path / "kept", "auto", True, None)
    record = measure_clip(task)
    assert record.outcome == "unreadable"
    assert "broken.mp4 is not a readable video" in record.reasons[0]
    (kept,) = (tmp_path / "kept").iterdir()
    assert replace(read_record(kept, task.made_with), memory_bytes=0) == replace(record, memory_bytes=0)
    assert measure_clip(replace(task, path=tmp_path / "none.mp4")).outcome == "unreadable"
