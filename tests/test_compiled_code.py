"""Where compiled code is kept."""

import os
import subprocess
import sys
import tempfile

import numba
import pytest

from rssc.kernels import compiled_code


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    # Set and then removed, so that what a test leaves there is removed after it.
    monkeypatch.setenv(compiled_code._SHARED, "")
    monkeypatch.delenv(compiled_code._SHARED)
    compiled_code.cache_folder.cache_clear()
    yield
    compiled_code.cache_folder.cache_clear()


def test_folder_is_named_after_the_contents_of_the_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernels" / "bundle").mkdir(parents=True)
    (tmp_path / "kernels" / "bundle" / "a.py").write_text("x = 1")
    monkeypatch.setattr(compiled_code, "_HERE", tmp_path / "kernels")
    first = compiled_code.cache_folder()
    (tmp_path / "kernels" / "bundle" / "a.py").write_text("x = 2")
    compiled_code.cache_folder.cache_clear()
    second = compiled_code.cache_folder()
    assert first != second and second.parent == tmp_path
    # Of another version that was in use lately, nothing is removed; of an old one it is. Anything else is not ours.
    assert first.exists()
    os.utime(first, (0, 0))
    compiled_code.cache_folder.cache_clear()
    assert compiled_code.cache_folder() == second
    assert not first.exists() and (tmp_path / "kernels").exists()


def test_a_place_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    folder = compiled_code.cache_folder()
    assert folder.is_dir() and tmp_path not in folder.parents
    folder.rmdir()


def test_compiled_code_is_kept_where_the_user_has_no_home(monkeypatch, tmp_path):
    """As in a container that runs under a user without an entry in the password file, from a read-only installation."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["no such user"])
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert compiled_code.cache_folder.__wrapped__().parent == tmp_path


def test_the_setting_of_other_users_of_numba_stays_theirs():
    done = subprocess.run(
        [sys.executable, "-c", "import numba; before = numba.config.CACHE_DIR; import rssc.kernels.lie\n"
         "assert numba.config.CACHE_DIR == before"], check=False
    )  # fmt: skip
    assert done.returncode == 0
    assert "rssc" not in numba.config.CACHE_DIR
