"""A plugin of pytest: prints why a test failed that passed, or failed again, at its second run."""

LONGEST = 4000  # characters, from the end of each text


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get('rerun', []):
        terminalreporter.write_sep('_', f'first run of {report.nodeid}')
        terminalreporter.write_line(report.longreprtext[-LONGEST:])
