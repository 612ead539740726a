"""The whole flow: `calibrate` on one page, and what it is made of."""
