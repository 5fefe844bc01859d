"""The fixture `mount`: the file systems of hanging_files.py, below the folder of a test."""

import os
import subprocess

import pytest
from launches import ROOT, poll

SYSTEM_PYTHON = '/usr/bin/python3'  # Debian's, which python3-fusepy is for


def why_not():
    if not os.path.exists('/dev/fuse'):
        return 'there is no /dev/fuse'
    if os.geteuid() != 0:
        return 'only root can mount'
    asked = subprocess.run([SYSTEM_PYTHON, '-c', 'import fusepy'], capture_output=True, timeout=60,
                           check=False)
    return '' if asked.returncode == 0 else 'python3-fusepy is not installed'


@pytest.fixture
def mount(tmp_path):
    """Mounts a folder through FUSE. Its arguments: the calls that are never answered."""
    if why := why_not():
        pytest.skip(why)
    behind, shown = tmp_path / 'behind', tmp_path / 'shown'
    behind.mkdir()
    shown.mkdir()
    servers = []

    def make(*args):
        command = [SYSTEM_PYTHON, ROOT / 'tests/support/hanging_files.py', shown, behind, *args]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        servers.append(server)
        poll(lambda: server.poll() is not None or os.path.ismount(shown), 30, 'its mount')
        if server.poll() is not None:
            why = server.stderr.read().decode()
            refused = ('device not found', 'not permitted', 'No such device')
            is_refused = any(text in why for text in refused)
            (pytest.skip if is_refused else pytest.fail)(f'no file system is mounted: {why}')
        return shown

    make.servers = servers
    try:
        yield make
    finally:
        for server in servers:
            server.kill()  # a waiting caller gets an error
            server.wait()
            server.stderr.close()
        subprocess.run(['umount', '--lazy', shown], capture_output=True, timeout=30, check=False)
