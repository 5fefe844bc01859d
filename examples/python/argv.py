"""Prints its arguments as a Python list. Needs no torch.

cpprun --nproc_per_node=1 examples/python/argv.py "a b" "" --x="q r" -- -y
"""

import sys

print(sys.argv[1:])
