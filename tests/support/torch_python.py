"""The Python that has torch: TORCH_PYTHON, or the project's own."""

import os

from launches import ROOT

PYTHON = os.environ.get('TORCH_PYTHON', str(ROOT / '.venv' / 'bin' / 'python'))
