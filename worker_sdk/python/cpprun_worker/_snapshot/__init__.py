"""Snapshots of a training: what cpprun_worker.Snapshot consists of. Needs torch."""
