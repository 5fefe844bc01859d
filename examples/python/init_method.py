"""Joins a process group in one of three ways, sums up the ranks, prints Done.

cpprun --nproc_per_node=4 examples/python/init_method.py
cpprun --nproc_per_node=4 examples/python/init_method.py --init-method=tcp://127.0.0.1:23457
cpprun --nproc_per_node=4 examples/python/init_method.py --init-method=file:///tmp/meeting-point
python3 examples/python/init_method.py --init-method=tcp://127.0.0.1:23457 --rank 0 --world-size 1
"""

import argparse
import datetime
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument(
    "--init-method", default="env://", help="env://, tcp://HOST:PORT or file:///PATH"
)
parser.add_argument("--rank", type=int, help="default: RANK")
parser.add_argument("--world-size", type=int, help="default: WORLD_SIZE")
parser.add_argument("--timeout", type=float, default=30, help="seconds to wait for the others")
args = parser.parse_args()

place = {}
if args.init_method != "env://" or args.rank is not None:
    place["rank"] = int(os.environ["RANK"]) if args.rank is None else args.rank
if args.init_method != "env://" or args.world_size is not None:
    place["world_size"] = (
        int(os.environ["WORLD_SIZE"]) if args.world_size is None else args.world_size
    )

dist.init_process_group(
    "gloo", init_method=args.init_method, timeout=datetime.timedelta(seconds=args.timeout), **place
)
total = torch.tensor([dist.get_rank()])
dist.all_reduce(total)
world = dist.get_world_size()
assert total.item() == world * (world - 1) // 2, total
dist.destroy_process_group()
print("Done", flush=True)
