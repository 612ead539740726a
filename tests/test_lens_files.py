"""Lenses read from files of other tools."""

import cv2
import numpy as np
import pytest

from rssc.errors import InputError
from rssc.io.lens_files import read_lens
from rssc.io.yaml_file import read_yaml

CAMCHAIN = """
cam0:
  camera_model: pinhole
  intrinsics: [700.0, 701.0, 320.0, 240.0]
  distortion_model: radtan
  distortion_coeffs: [0.1, 0.01, 0.001, 0.002]
cam1:
  camera_model: pinhole
  intrinsics: [739.0, 739.1, 625.0, 517.0]
  resolution: [1280, 1024]
  distortion_model: equidistant
  distortion_coeffs: [0.01, 0.006, -0.008, 0.005]
"""


def test_kalibr(tmp_path):
    path = tmp_path / "camchain.yaml"
    path.write_text(CAMCHAIN)
    lens, size = read_lens(f"{path}:cam1")
    assert size == (1280, 1024)
    assert (lens.model, lens.fx, lens.distortion[2]) == ("fisheye", 739.0, -0.008)
    assert read_lens(f"{path}:cam0")[0].model == "opencv"
    with pytest.raises(InputError, match="name one"):
        read_lens(str(path))
    with pytest.raises(InputError, match="no camera cam7"):
        read_lens(f"{path}:cam7")


def test_opencv_yaml(tmp_path):
    path = tmp_path / "camera.yaml"
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    storage.write("camera_matrix", np.array([[700.0, 0, 320], [0, 701, 240], [0, 0, 1]]))
    storage.write("distortion_coefficients", np.array([[0.1, 0.01, 0.001, 0.002, 0.0]]))
    storage.release()
    lens, size = read_lens(str(path))
    assert size is None
    assert (lens.model, lens.fy, lens.distortion) == ("opencv", 701.0, (0.1, 0.01, 0.001, 0.002))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("%YAML:1.0\n---\na: [1,", "is not YAML|camera_matrix"),
        ("cam0:\n  intrinsics: [1, 2]", r"cam0 of .* has intrinsics: \[1, 2\]; expected .* four numbers"),
        ("a: [1, 2", "not YAML"),
        ("a: 1", "no camera with intrinsics"),
        (None, "does not exist"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_lens(str(path))


def test_aliases_are_read_and_bombs_of_them_are_not(tmp_path):
    path = tmp_path / "camchain.yaml"
    path.write_text("a: &one [1.0, 2.0]\nb: *one\n")
    assert read_yaml(path) == {"a": [1.0, 2.0], "b": [1.0, 2.0]}
    levels = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12)]
    for bomb in ("\n".join(["l0: &l0 [1]", *levels]), "a: &a [*a]\n"):
        path.write_text(bomb)
        with pytest.raises(InputError, match="aliases stand for too much"):
            read_yaml(path)
