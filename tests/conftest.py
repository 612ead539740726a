"""Fixtures that all tests share."""

import os

import numpy as np
import pytest

from rssc.datasets.shared import data_folder
from tests.browser import open_browser

# Test processes side by side share the cores; workers of pytest-xdist read this before they use a thread.
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    os.environ.setdefault("RSSC_THREADS", str(max(1, (os.cpu_count() or 1) // int(workers))))
# Tests make what they test, and leave the user's cache alone; those of the cache name a folder.
os.environ["RSSC_CACHE"] = ""


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture
def shared_data():
    folder = data_folder()
    if folder is None:
        pytest.skip("the shared data are not here; set RSSC_DATA to the folder that has them")
    return folder
