"""The global-shutter start: keyframes, mapping, lens search, rough readout; a turning camera; a board; COLMAP."""
