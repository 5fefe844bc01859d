"""Packages for other machines than this one: they take tools and time that the gate has not."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
