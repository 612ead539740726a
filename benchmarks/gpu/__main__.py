"""`python -m benchmarks.gpu`: see `benchmarks.gpu.render`."""

from benchmarks.gpu.stand_ins import stand_in

stand_in()

from benchmarks.gpu.render import main  # noqa: E402

main()
