"""README and docs: every code block runs, every command is one, every link leads somewhere."""

import inspect
import re
import shlex
import shutil
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import rssc
from rssc import cli
from rssc.simulation import simulate_scene
from rssc.simulation.clip import ClipOptions, render_clip
from rssc.simulation.clip_files import write_clip
from tests.test_fleet import made_up_catalog
from tools.command_reference import PAGE, command_page

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
PARSED = {"calibrate", "catalog", "track", "demo", "experiment", "app"}
"""Commands that take long, or serve: their words are read by the command line, and the files they name are there."""
NOT_RUN = {
    "pip install . && rssc demo": "needs a new environment; the workflows run it",
    "pip install '.[test]' && pytest": "is how these tests are run",
    "pip install 'rssc[": "installs",
    "git clone URL rssc && cd rssc": "has no address",
    "pip install -e '.[test,docs]'": "installs",
    "pre-commit install": "changes the repository's hooks",
    "pytest tests/test_lens.py": "is one of these tests",
    "ruff check . && ruff format . && pyright && lint-imports": ".ci/run runs them",
    "mkdocs build": ".ci/run runs it",
    "python -m benchmarks --gate": "takes minutes; benchmarks/tests tests it",
    "python -m benchmarks frames": "benchmarks/tests/test_frames.py tests it",
    "python -m benchmarks.gpu": "the same",
    "python -m benchmarks coverage": "takes hours",
    "ffmpeg -noautorotate": "another program",
    "dask ": "the same; it serves",
    "source <(rssc completion bash)": "changes the shell; tests/test_cli.py runs the command in it",
    "rssc completion zsh >": "the same",
    "rssc completion fish >": "the same",
}
"""Beginnings of lines that no test runs, and why."""
PLACEHOLDERS = {"FORMAT": "opencv", "OUT": "exported"}


class Block(NamedTuple):
    name: str
    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL)
    return [
        Block(f"{page.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}", match[2], dedent(match[3]))
        for match in found
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
LINES = [
    (block.name, line.strip())
    for block in BLOCKS
    if block.language in ("bash", "sh")
    for line in block.text.splitlines()
    if line.strip() and not line.strip().startswith("#")
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with what the pages speak of: a clip that is calibrated once, under all of its names."""
    folder = tmp_path_factory.mktemp("docs")
    clip = folder / "rssc_demo" / "clip"
    write_clip(render_clip(ClipOptions(320, 240, 30, motion="shaky", readout_ratio=0.7, seed=2)), clip, video=True)
    shutil.copy(clip / "truth.json", folder / "truth.json")
    shutil.copy(clip / "trajectory.tum", folder / "truth.tum")
    for name in ("clip", "a", "b", "board"):
        shutil.copy(clip / "clip.mp4", folder / f"{name}.mp4")
    for name in ("folder_of_images", "footage"):
        (folder / name).mkdir()
    shutil.copy(clip / "clip.mp4", folder / "footage")
    (folder / "aprilgrid.yaml").write_text(
        "target_type: aprilgrid\ntagCols: 6\ntagRows: 6\ntagSize: 0.1\ntagSpacing: 0.3\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.run(["calibrate", "clip.mp4", "-o", "out", "-q"]) == 0
        for name in ("monday", "tuesday", "tracked"):
            shutil.copytree("out", name)
        shutil.copytree("out", "rssc_demo", dirs_exist_ok=True)
        calibration = rssc.Calibration.load("out/calibration.json")
        calibration.save("calibration.json")
        rssc.export(calibration, "gsplat", "gsplat.npz")
        rssc.export(calibration, "kalibr", "camchain.yaml")
        camchain = Path("camchain.yaml")
        camchain.write_text(camchain.read_text().replace("cam0:", "cam1:"))
    return folder


@pytest.fixture
def inside(prepared, monkeypatch):
    monkeypatch.chdir(prepared)
    monkeypatch.setenv("RSSC_CACHE", str(prepared / "cache"))
    signature = inspect.signature(rssc.calibrate)

    def calibrated(*arguments, **options):
        """What calibrating gave, once: it takes longest."""
        source = signature.bind(*arguments, **options).arguments["source"]
        assert Path(source).exists()
        return rssc.Calibration.load("out/calibration.json")

    def tracked(source, calibration, **options):
        """The same, of few frames."""
        assert Path(source).exists()
        return rssc.Calibration.load(calibration)

    monkeypatch.setattr(rssc, "calibrate", calibrated)
    monkeypatch.setattr(rssc, "track", tracked)
    asked = inspect.signature(rssc.catalog)

    def catalogued(*arguments, **options):
        """A made-up one, for the same reason."""
        assert Path(asked.bind(*arguments, **options).arguments["sources"]).exists()
        return made_up_catalog()

    monkeypatch.setattr(rssc, "catalog", catalogued)
    return prepared


def beginning(line):
    return next((start for start in NOT_RUN if line.startswith(start)), None)


# Each line once, wherever it is.
RUN = {tuple(shlex.split(line, comments=True)): name for name, line in LINES if not beginning(line)}


@pytest.mark.parametrize("line", RUN, ids=" ".join)
def test_commands(line, inside, capsys):
    program, command, *words = line
    assert program == "rssc", f"{RUN[line]}: say in NOT_RUN why this is not run"
    words = [PLACEHOLDERS.get(word, word) for word in words]
    if command not in PARSED:
        assert cli.run([command, *words]) == 0, capsys.readouterr().err
        return
    parsed = cli._parse(command, words)
    if command == "track":
        assert parsed.source.exists() and parsed.calibration.exists(), RUN[line]
    if command in ("calibrate", "catalog"):
        assert all(source.exists() for source in parsed.sources), RUN[line]


def test_lines_that_are_not_run_are_in_the_docs():
    used = {beginning(line) for _, line in LINES}
    assert set(NOT_RUN) <= used


def own_tracks():
    """What the README calls its own tracks."""
    scene = simulate_scene(3, frame_count=12, point_count=60).scene
    tracks = scene.tracks
    return {
        "frame_count": tracks.frame_count, "point_count": tracks.point_count, "frames": tracks.frames,
        "points": tracks.points, "pixels": tracks.pixels, "points_xyz": scene.points,
        "cam_from_world": scene.cam_from_world,
    }  # fmt: skip


def gsplat_stand_in():
    """gsplat needs a GPU: here only the shapes of what it is given are looked at."""

    def rasterization(means, *_, viewmats, viewmats_rs, Ks, width, height, **more):
        assert viewmats.shape == viewmats_rs.shape == (1, 4, 4) and Ks.shape == (1, 3, 3)
        assert (width, height) == (320, 240) and more["camera_model"] in ("pinhole", "fisheye")

    return {
        "np": np, "gsplat": SimpleNamespace(rasterization=rasterization), "RollingShutterType": int, "i": 2,
        "means": None, "quats": None, "scales": None, "opacities": None, "colors": None,
    }  # fmt: skip


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "python"], ids=lambda block: block.name)
def test_python_blocks(block, inside):
    names = {}
    if "point_count" in block.text:
        names = own_tracks()
    if "gsplat." in block.text:
        names = gsplat_stand_in()
    exec(compile(block.text, block.name, "exec"), names)


def test_the_command_reference_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == command_page(), "run python -m tools.command_reference"


def test_tests_that_pages_name_exist():
    for page in PAGES:
        for file, test in re.findall(r"(tests/\w+\.py)(?:::(\w+))?", page.read_text(encoding="utf-8")):
            source = (ROOT / file).read_text()
            assert not test or f"def {test}(" in source, f"{page.name}: {file}::{test}"


def anchors_of(page: Path) -> set[str]:
    """Of the headings of a page, as GitHub and the site make them."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {word.strip().replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """In the repository; the site's own are checked when it is built."""
    for link in re.findall(r"\]\(((?!https?:)[^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in anchors_of(target), link
