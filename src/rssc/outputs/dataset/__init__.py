"""Datasets that the next tool trains on: images, poses and coloured points in one folder, as that tool reads them."""

from rssc.outputs.dataset.dataset import Dataset, write_dataset

__all__ = ["Dataset", "write_dataset"]
