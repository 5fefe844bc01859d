"""A module whose import puts cpprun in the place of torch's parts, in this process."""

from stand_ins import launching, stores

launching.install()
stores.install()
