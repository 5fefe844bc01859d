"""cpprunctl top in a real terminal (tmux), and a picture of it for the pages."""

import html
import shutil
import subprocess
import sys

import pytest
from nodes import BIN, HERE, Job, wait_for

STEPPER = ('--no-python', sys.executable, str(HERE / 'dashboard_worker.py'))
PAGE = """<meta charset="utf-8"><title>top</title><style>
body { margin: 0; padding: 16px 20px; background: #15181c; color: #dfe2e6; }
pre { margin: 0; font: 14px/1.35 'DejaVu Sans Mono', monospace; }</style><pre>%s</pre>"""


@pytest.mark.skipif(not shutil.which('tmux'), reason='tmux is not installed')
def test_top_fits_one_screen(browser, cluster, tmp_path, pictures):
    job = Job(cluster, 2, run_id='resnet50', restarts=3)
    for number in (0, 1):
        job.agent(number, nproc=4, program=STEPPER, SLOW='5')
    wait_for(lambda: job.status().get('phase') == 'running', 'the job')
    tmux = ['tmux', '-S', tmp_path / 'tmux', '-f', '/dev/null']
    subprocess.run([*tmux, 'new-session', '-d', '-x', '84', '-y', '24',
                    f'{BIN}/cpprunctl top -d 0.2 resnet50; sleep 60'], check=True, timeout=60)
    try:
        shown = wait_for(lambda: screen_with(tmux, 'slowest: rank 5'), 'the screen', 60)
    finally:
        subprocess.run([*tmux, 'kill-server'], check=False, timeout=60)
    lines = shown.rstrip('\n').split('\n')
    assert lines[0] == 'job resnet50' and 'restarts 0/3' in lines[1]
    assert len([line for line in lines if ' MiB' in line]) == 8, shown
    (tmp_path / 'top.html').write_text(PAGE % html.escape('\n'.join(lines)))
    browser.opens(f'file://{tmp_path}/top.html')
    browser.devtools('Emulation.setDeviceMetricsOverride', width=780, height=100,
                     deviceScaleFactor=1, mobile=False)
    browser.picture(pictures / 'top.png')
    cluster.finish()


def screen_with(tmux, text):
    shown = subprocess.run([*tmux, 'capture-pane', '-p'], capture_output=True, text=True,
                           check=True, timeout=60).stdout
    return shown if text in shown else None
