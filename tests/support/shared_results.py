"""Results that the pytest processes of one run share, so that only one of them computes each."""

import fcntl
import hashlib
import json
import os


def shared(test_folder, key, compute):
    """compute(), whose result has to be JSON: that of the first test with this key. `test_folder`
    is the test's tmp_path, `key` a tuple of strings and numbers."""
    run = test_folder.parent
    if 'PYTEST_XDIST_WORKER' in os.environ:  # each process has a folder in that of the run
        run = run.parent
    path = run / f'shared-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}'
    with open(path, 'a+') as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the process that computes it holds the lock
        file.seek(0)
        text = file.read()
        if not text:
            text = json.dumps(compute())
            file.write(text)
    return json.loads(text)
