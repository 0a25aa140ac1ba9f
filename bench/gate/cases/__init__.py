"""Fixed cases for the gate: the same work in every run, small enough for every change."""
