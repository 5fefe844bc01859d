"""Prints the variables that a launcher gives its workers, sorted, as NAME=value. Needs no torch.

cpprun --nproc_per_node=2 examples/python/envdump.py                    # of every worker
cpprun --nproc_per_node=2 examples/python/envdump.py --rank 0           # of global rank 0 only
cpprun --nproc_per_node=2 examples/python/envdump.py --rank 0 --names   # only the names
cpprun --nproc_per_node=2 examples/python/envdump.py --names PATH,RANK  # the values of these
"""

import argparse
import os
import sys

NAMES = {
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "ROLE_RANK",
    "ROLE_NAME",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMP_NUM_THREADS",
    "NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
}
PREFIXES = ("TORCHELASTIC_", "CPPRUN_")

parser = argparse.ArgumentParser()
parser.add_argument("--rank", help="only the worker of this global rank prints")
parser.add_argument(
    "--names", nargs="?", const="", help="print only the names, or the values of NAMES (a,b)"
)
args = parser.parse_args()

if args.rank in (None, os.environ.get("RANK")):
    found = sorted(n for n in os.environ if n in NAMES or n.startswith(PREFIXES))
    if args.names is None:
        lines = [f"{name}={os.environ[name]}" for name in found]
    elif args.names == "":
        lines = found
    else:
        lines = [os.environ.get(name, "") for name in args.names.split(",")]
    sys.stdout.write("".join(line + "\n" for line in lines))
