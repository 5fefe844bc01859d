"""Runs torch's TCPStore server on a port until it is killed. Needs a Python with torch."""

import signal
import sys

import torch.distributed

server = torch.distributed.TCPStore(
    '127.0.0.1', int(sys.argv[1]), is_master=True, wait_for_workers=False, use_libuv=True
)
signal.pause()
