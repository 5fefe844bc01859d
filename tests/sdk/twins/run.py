"""Runs a twin as Python would, but ends it at once: run.py SCRIPT [WORD...]

torch's threads now and then abort a process that is just ending ("terminate called without an
active exception"), which does not concern the twin's output.
"""

import os
import runpy
import sys

del sys.argv[0]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name='__main__')
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
