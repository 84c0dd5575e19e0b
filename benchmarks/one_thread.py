"""Import this first: BLAS, OpenMP and numba use one core each, so that ratios of one run compare one core with one."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"
