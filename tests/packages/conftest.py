"""Packages for other machines than this one: they need tools and time beyond the ordinary test run.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
