"""The command line: what it loads, what it prints and where, and its words on mistakes."""

import json
import os
import shutil
import subprocess
import sys

import cv2
import numpy as np
import pytest

import rssc
from rssc.cli import COMMANDS, run
from rssc.cli.experiment import STUDIES
from rssc.model.lens import LENS_MODELS
from rssc.names import LENS_NAMES, METHOD_NAMES
from rssc.outputs.options import MotionName
from rssc.simulation.motion import ROOM_MOTIONS
from rssc.solver.methods import METHODS

HEAVY = ("numpy", "scipy", "numba", "cv2", "av", "plotly", "pycolmap", "pydantic", "rich")


def command(*words, **environment):
    line = [sys.executable, "-m", "rssc", *map(str, words)]
    return subprocess.run(
        line, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80", **environment}
    )


def loaded_by(code: str) -> set[str]:
    """Which of the heavy modules a program loads."""
    check = f"{code}\nimport sys; print(*({set(HEAVY)!r} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Frames that show nothing, so that a check is over at once."""
    folder = tmp_path_factory.mktemp("plain")
    for i in range(12):
        cv2.imwrite(str(folder / f"{i:03d}.png"), np.full((120, 160), 128, np.uint8))
    return folder


def test_import_and_help_load_nothing_heavy():
    assert loaded_by("import rssc") == set()
    helps = "\n".join(f"with suppress(SystemExit): run([{name!r}, '--help'])" for name in COMMANDS)
    assert loaded_by(f"from contextlib import suppress\nfrom rssc.cli import run\nrun(['--help'])\n{helps}") == set()
    assert loaded_by("import numpy") == {"numpy"}


def test_names_are_those_of_the_registries():
    assert tuple(LENS_MODELS) == LENS_NAMES
    assert tuple(METHODS) == METHOD_NAMES
    assert set(MotionName.__args__) == set(ROOM_MOTIONS)


@pytest.mark.parametrize("name", [*COMMANDS, *(f"experiment {study}" for study in STUDIES)])
def test_help_has_words_and_no_types(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        run([*name.split(), "--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    types = ("{None}", "NoneType", "<class", "PosixPath", " INT", "FLOAT", "STR", ": None)", ": False)", ": True)")
    assert not [word for word in types if word in said]
    assert max(map(len, said.splitlines()[1:])) <= 80
    if name != "experiment":
        assert all(option in said for option in ("--verbose", "-q", "--json"))


def test_overview(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in (*COMMANDS, "completion"))
    assert max(map(len, said.splitlines())) <= 80
    assert run([]) == 2


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rssc {rssc.__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["calibrat", "x"], "there is no command 'calibrat'; did you mean calibrate?"),
        (["-q", "check", "x"], "-q is no command; options come after it: rssc COMMAND -q."),
        (["check", "x", "--fps", "abc"], "--fps is 'abc'; expected a number, for instance 29.97 or 30000/1001."),
        (["check", "x", "--fps=1/0"], "--fps is '1/0'; expected a number"),
        (["check", "x", "--fps", "0"], "fps is 0; expected a positive number"),
        (["check", "x", "--fps", "nan"], "fps is nan; expected a positive number"),
        (["check", "x", "--jobs", "two"], "--jobs is 'two'; expected a whole number."),
        (["check", "x", "--jobs", "0"], "jobs are 0; expected at least 1."),
        (["check", "x", "-q", "-v"], "exclude each other"),
        (["check", "--", "-clip.mp4"], "-clip.mp4 does not exist"),
        (["check", "-clip.mp4"], "-clip.mp4 is no option; if it is a file, put ./ before its name: ./-clip.mp4."),
        (["check", "./-clip.mp4", "--frames", "-30:"], "-clip.mp4 does not exist"),
        (["-v"], "-v is no command"),
        (["calibrate", "-o", "out"], "there is no source"),
        (["check", "--method", "te", "x"], "check has no option --method; rssc check --help lists them."),
        (["check", "x", "--frame=1:9"], "check has no option --frame; did you mean --frames?"),
        (["check", ""], "the name of a file or folder is empty"),
        (["calibrate", "clip.mp4", "-o", ""], "the name of a file or folder is empty"),
        (["simulate", "-o", "out", "--seed", "-1"], "seed is -1"),
        (["completion", "tcsh"], "bash, zsh, fish"),
    ],
)
def test_mistakes_are_one_line(words, message, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["rssc", *words])
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.err.startswith("rssc: ") and message in said.err and said.err.count("\n") == 1
    assert not said.out


def test_a_frame_rate_may_be_a_fraction(plain):
    done = command("check", plain, "--fps", "30000/1001", "--json")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["status"] == "degenerate"


def test_json_is_the_only_thing_on_stdout(plain, tmp_path):
    found = command("calibrate", plain, "--fps", 30, "-o", tmp_path, "--json")
    assert found.returncode == 3
    document = json.loads(found.stdout)
    assert document["status"] == "degenerate" and document["folder"] == str(tmp_path)
    assert json.loads((tmp_path / "calibration.json").read_text())["reasons"] == document["reasons"]
    assert "texture" in found.stderr
    wrong = command("check", tmp_path / "none.mp4", "--json")
    assert wrong.returncode == 2
    assert json.loads(wrong.stdout) == {"error": wrong.stderr.removeprefix("rssc: ").strip(), "exit_code": 2}


def test_quiet_says_nothing_but_errors(plain):
    quiet = command("check", plain, "--fps", 30, "-q")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (3, "", "")
    both = command("check", plain, "--fps", 30, "-q", "--json")
    assert json.loads(both.stdout)["status"] == "degenerate" and not both.stderr


@pytest.mark.parametrize("words", [["completion", "bash"], ["--help"], ["calibrate", "--help"]])
def test_a_reader_that_leaves_is_no_error(words):
    with subprocess.Popen(
        [sys.executable, "-m", "rssc", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_names_that_a_terminal_has_no_letters_for(tmp_path):
    place = tmp_path / "\u65e5\u672c \xe9"
    words = ("simulate", "-o", place, "--width", "64", "--height", "48", "--frames", "1")
    plain, document = (command(*words, *more, PYTHONIOENCODING="ascii") for more in ([], ["--json"]))
    assert plain.returncode == document.returncode == 0, plain.stderr + document.stderr
    assert json.loads(document.stdout)["folder"] == str(place)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell, capsys):
    assert run(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("calibrate", "rectify", "undistorted-from"))


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes_options_and_files(tmp_path, capsys):
    assert run(["completion", "bash"]) == 0
    script = tmp_path / "rssc.bash"
    script.write_text(capsys.readouterr().out)
    code = (
        f"source {script}; complete -p rssc; COMP_WORDS=(rssc rectify --bo); COMP_CWORD=2; _tyro_rssc; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["complete -o bashdefault -o default -F _tyro_rssc rssc", "--border"]


def test_check_has_the_notes_of_a_calibration(plain, tmp_path):
    """Of what is unusual about the footage: here repeats, and stamps that leave gaps."""
    folder = tmp_path / "stamped"
    folder.mkdir()
    for i, image in enumerate(sorted(plain.iterdir())):
        picture = cv2.imread(str(image))
        picture[:, : 10 * (i // 2)] += np.uint8(60)
        cv2.imwrite(str(folder / f"{1000.0 + (i + 5 * (i > 5)) / 30:.6f}.png"), picture)
    checked = rssc.check(folder)
    calibrated = rssc.calibrate(folder)
    placeholder = "nothing could be estimated: the lens is a placeholder, not this camera's."
    assert checked.notes and (*checked.notes, placeholder) == calibrated.notes
