"""Jobs that are observed and disturbed while they run."""

import pytest
from launches import BIN, Launches, skip_unless_built


class Jobs(Launches):
    def cases(self, n, name, *words, flags=(), restarts=3, env=None):
        """A case of sdk_elastic_cases on n ranks."""
        fixed = ('--standalone', f'--nproc-per-node={n}', f'--max-restarts={restarts}')
        program = BIN / 'sdk_elastic_cases'
        own = {'OMP_NUM_THREADS': '1', 'TMPDIR': str(self.folder), **(env or {})}
        command = (BIN / 'cpprun', *fixed, *flags, '--no-python', program, name, *words)
        return self.start(*command, env=own)


@pytest.fixture
def jobs(tmp_path):
    skip_unless_built()
    made = Jobs(tmp_path)
    yield made
    made.close()
