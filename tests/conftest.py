"""Records tests that passed only when they were repeated, for the summary (tools/summary.py)."""

import pathlib


class Repeats:
    """Node ids, in a file beside the JUnit file, which lacks them."""

    def __init__(self, path):
        self.path, self.names = path, []

    def pytest_runtest_logreport(self, report):
        if report.outcome == 'rerun':
            self.names.append(report.nodeid)

    def pytest_sessionfinish(self):
        self.path.write_text(''.join(f'{name}\n' for name in self.names))


def pytest_configure(config):
    junit = config.getoption('xmlpath', None)
    if junit and not hasattr(config, 'workerinput'):  # not in one of xdist's processes
        config.pluginmanager.register(Repeats(pathlib.Path(junit).with_suffix('.repeats')))
