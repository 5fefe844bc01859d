"""Prints its arguments, rank and world size. Needs no torch.

cpprun --nproc_per_node=4 examples/python/launch_args_test.py
"""

import os
import sys

e = os.environ
# A single write, so that both lines stay together in the mixed output of all workers.
sys.stdout.write(
    f"{sys.argv}\n"
    f"Process Id:{os.getpid()}, Rank: {e['RANK']}, Local Rank: {e['LOCAL_RANK']}, "
    f"World Size: {e['WORLD_SIZE']}, Local World Size: {e['LOCAL_WORLD_SIZE']}\n"
)
