"""Stands for packages on a slow file system: its import takes SLOW_IMPORT_SECONDS."""

import os
import time

time.sleep(float(os.environ['SLOW_IMPORT_SECONDS']))
