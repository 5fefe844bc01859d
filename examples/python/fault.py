"""One worker fails in a chosen way, the others wait. Needs no torch.

cpprun --standalone --nproc_per_node=2 examples/python/fault.py --how exit:13
cpprun --standalone --nproc_per_node=2 examples/python/fault.py --how signal:SEGV --rank 1
"""

import argparse
import os
import resource
import signal
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument(
    "--how", required=True, help="exit:CODE, signal:NAME, raise, oom, stop (SIGSTOP) or hang"
)
parser.add_argument("--rank", type=int, default=0, help="global rank that fails, default: 0")
parser.add_argument("--attempt", type=int, help="only at this restart count")
parser.add_argument(
    "--wait", type=float, default=60, help="seconds that the others wait, default: 60"
)
args = parser.parse_args()

attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
if args.attempt not in (None, attempt):
    sys.exit(0)
if int(os.environ.get("RANK", "0")) != args.rank:
    time.sleep(args.wait)
    sys.exit(0)

kind, _, value = args.how.partition(":")
if kind == "exit":
    sys.exit(int(value))
elif kind == "signal":
    os.kill(os.getpid(), signal.Signals["SIG" + value.removeprefix("SIG")])
elif kind == "raise":
    raise RuntimeError("this worker was asked to fail")
elif kind == "oom":
    resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
    bytearray(1 << 30)
elif kind == "stop":
    os.kill(os.getpid(), signal.SIGSTOP)
elif kind != "hang":
    sys.exit(f"unknown: --how {args.how}")
time.sleep(args.wait)
