"""A script that sets MASTER_ADDR and MASTER_PORT itself, as tutorials do, and prints ok.

    cpprun --nproc_per_node=2 examples/python/override_master.py
    cpprun --nproc_per_node=2 examples/python/override_master.py 23456

Rank 0 serves the store at the address that the script sets, so the script works under any launcher.
But a fixed port collides with the next job on the machine: better leave it to the launcher.
"""

import datetime
import os
import sys

import torch
import torch.distributed as dist

os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = sys.argv[1] if len(sys.argv) > 1 else "12355"

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
total = torch.ones(1)
dist.all_reduce(total)
assert total.item() == dist.get_world_size()
dist.destroy_process_group()
print("ok", flush=True)
