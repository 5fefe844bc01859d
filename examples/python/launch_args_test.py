"""Prints its arguments and its place in the world. Needs no torch.

cpprun --nproc_per_node=4 examples/python/launch_args_test.py
"""

import os
import sys

e = os.environ
# One write for both lines: what a worker writes at once stays together.
sys.stdout.write(
    f"{sys.argv}\n"
    f"Process Id:{os.getpid()}, Rank: {e['RANK']}, Local Rank: {e['LOCAL_RANK']}, "
    f"World Size: {e['WORLD_SIZE']}, Local World Size: {e['LOCAL_WORLD_SIZE']}\n"
)
