"""Clients die and restart while others work; values, counters and waits stay correct. The
invariants are in store_stress_client.py. With CPPRUN_ALL a longer time, and more seeds.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from test_store import Serving

pytest.importorskip("torch.distributed")

STRESS = pathlib.Path(__file__).with_name("store_stress.py")
IS_LONG = bool(os.environ.get("CPPRUN_ALL"))
SECONDS = 60 if IS_LONG else 8


@pytest.fixture
def serving():
    made = Serving()
    yield made
    assert made.process.poll() is None, "the server died"
    assert made.stop() == 0


@pytest.mark.parametrize("seed", range(3 if IS_LONG else 1))
def test_killed_clients_disturb_no_other(serving, seed):
    args = [sys.executable, STRESS, serving.port, seed, SECONDS]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
           "TORCH_CPP_LOG_LEVEL": "ERROR"}
    done = subprocess.run([str(arg) for arg in args], capture_output=True, text=True,
                          timeout=SECONDS + 80, env=env)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert not report["wrong"], f"{report}\n{done.stderr}"
    assert report["leaks"] == [0, 0], f"connections and waits of dead clients: {report}"
    kills = report["kills"]
    assert min(kills.values()) > 0 and sum(kills.values()) > 30, report
    assert min(report[name] for name in ("passed", "expired", "sums", "tickets")) > 30, report
