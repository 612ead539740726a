"""How work is run: threads, BLAS, processes and progress."""
