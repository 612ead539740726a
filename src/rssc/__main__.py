"""`python -m rssc` is `rssc`."""

from rssc.cli import main

main()
