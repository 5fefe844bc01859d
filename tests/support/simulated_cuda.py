"""A CUDA device without a GPU: simulated_cuda.cpp, preloaded into Python below torch.cuda.

Memory can be copied and set, in streams, and nothing can be computed: every kernel is an error.
"""

import ctypes
import subprocess

import pytest
from launches import BIN
from torch_python import PYTHON

LIBRARY = BIN / 'simulated_cuda.so'
ENVIRONMENT = {'LD_PRELOAD': str(LIBRARY)}  # of a process that is to have the device
CUDA = 13  # the major version of the runtime that LIBRARY takes the place of


def skip_unless_simulated():
    """Skips a test where LIBRARY is not built or torch has another CUDA or none."""
    look = 'import torch; print((torch.version.cuda or "0").split(".")[0])'
    found = subprocess.run([PYTHON, '-c', look], capture_output=True, text=True, check=False)
    if not LIBRARY.exists():
        pytest.skip(f'{LIBRARY} is not built')
    if found.stdout.strip() != str(CUDA):
        pytest.skip(f'torch of {PYTHON} is not built for CUDA {CUDA}')


def hold(stream):
    """Stops a torch.cuda.Stream after what is queued in it, until release(), once for each hold().
    """
    ctypes.CDLL(None).simulated_cuda_hold(ctypes.c_void_p(stream.cuda_stream))


def release(stream):
    ctypes.CDLL(None).simulated_cuda_release(ctypes.c_void_p(stream.cuda_stream))


def set_capturing(is_capturing):
    """Whether all streams are being captured into a CUDA graph."""
    ctypes.CDLL(None).simulated_cuda_set_capturing(is_capturing)
