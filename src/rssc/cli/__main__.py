"""`python -m rssc.cli`."""

from rssc.cli import main

main()
