"""The unit of `cpprunctl serve` gives the server its sockets and little else."""

import pathlib
import shutil
import subprocess

import pytest

UNIT = pathlib.Path(__file__).parents[2] / 'packaging/systemd/cpprun-rendezvous.service'
EXPOSURE = 20  # tenths; systemd calls up to 20 "OK", and a unit without any protection has 96


@pytest.fixture(autouse=True)
def analyze():
    if shutil.which('systemd-analyze') is None:
        pytest.skip('systemd-analyze is not installed (package systemd)')


def exposure_of(unit):
    """Whether the unit is within EXPOSURE, and the output of systemd-analyze."""
    done = subprocess.run(
        ['systemd-analyze', 'security', '--offline=yes', f'--threshold={EXPOSURE}', '--no-pager',
         unit], capture_output=True, text=True, timeout=60)
    return done.returncode == 0, done.stdout + done.stderr


def test_rendezvous_unit_is_hardened():
    is_within, output = exposure_of(UNIT)
    assert is_within, output


def test_the_check_finds_a_unit_without_protection(tmp_path):
    bare = tmp_path / UNIT.name
    kept = ('[', 'ExecStart', 'Environment=', 'Description', 'DynamicUser')
    bare.write_text('\n'.join(x for x in UNIT.read_text().splitlines() if x.startswith(kept)))
    assert not exposure_of(bare)[0]
