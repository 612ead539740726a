"""The global-shutter start: keyframes, mapping, lens search, rough readout."""
