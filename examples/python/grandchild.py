"""Every worker starts a process that outlives it; then local rank 0 fails. Needs no torch.

    cpprun --standalone --nproc_per_node=2 examples/python/grandchild.py

The process has a session of its own, and cpprun ends it nevertheless: a second later no process
`sleep 45.123` may be alive.
"""

import os
import subprocess
import sys
import time

subprocess.Popen(["sh", "-c", "sleep 45.123 & sleep 45.123"], start_new_session=True)
if os.environ["LOCAL_RANK"] == "0":
    time.sleep(0.5)
    sys.exit(1)
time.sleep(60)
