"""Chunks of work in threads."""

import numpy as np
import pytest

from rssc.runtime.threads import balanced_chunks, run_chunks


@pytest.mark.parametrize("chunk_count", [1, 2, 7, 100])
def test_chunks_cover_all_items_once(rng, chunk_count):
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 50, 40))])
    chunks = balanced_chunks(offsets, chunk_count)
    assert len(chunks) <= chunk_count
    np.testing.assert_array_equal(np.concatenate([np.arange(a, b) for a, b in chunks]), np.arange(40))


@pytest.mark.parametrize("chunk_count", [0, 1, 2, 50])
def test_every_chunk_runs_once(chunk_count):
    calls = np.zeros(chunk_count, int)

    def task(index: int, begin: int, end: int) -> None:
        calls[index] += end - begin
        run_chunks(lambda *_: None, [(0, 1), (1, 2)])  # a task may have chunks of its own

    run_chunks(task, [(i, i + 1) for i in range(chunk_count)])
    assert (calls == 1).all()


def test_errors_reach_the_caller():
    def task(index: int, begin: int, end: int) -> None:
        if index == 3:
            raise ArithmeticError("chunk 3")

    with pytest.raises(ArithmeticError, match="chunk 3"):
        run_chunks(task, [(i, i + 1) for i in range(8)])
