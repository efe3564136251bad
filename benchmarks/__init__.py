"""Benchmarks: gradients of in-place programs and of single operations, measured against other engines.

Run as `python -m benchmarks`. Every engine gets one thread, which must be set before NumPy is first imported. It is set
here, in the file of the package that Python runs first.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
