"""cpprun in the place of torch's launcher and of its store's server, for torch's own tests.

`plugin` is the pytest plugin of stage torch_tests; docs/reference/frameworks.md has the results.
"""

uses = []  # one entry per start of cpprun or cpprunctl
