"""Every worker leaves a process behind; then local rank 0 fails. Needs no torch.

    cpprun --standalone --nproc_per_node=2 examples/python/grandchild.py

What is left behind has a session of its own. A second later nothing of it may be alive: no process
`sleep 45.123`.
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
