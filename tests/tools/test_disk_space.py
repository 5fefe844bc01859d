"""tools/test.sh refuses to begin all stages on a disk that is too small for them."""

import os
import pathlib
import subprocess

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / 'tools'
ON_A_SMALL_DISK = """
mount -t tmpfs -o size=1m none "$1"
mkdir "$1/tools"
cp "$2"/*.sh "$1/tools/"
exec bash "$1/tools/test.sh"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason='mounting a file system needs root')
def test_all_stages_need_their_disk_space(tmp_path):
    command = ['unshare', '-m', 'sh', '-ec', ON_A_SMALL_DISK, 'sh', tmp_path, TOOLS]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stdout == ''
    assert 'all stages need 20 GiB of disk; free: 1 GiB' in run.stderr
