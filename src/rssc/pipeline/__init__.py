"""The whole flow: `calibrate` on one page, and its steps."""
