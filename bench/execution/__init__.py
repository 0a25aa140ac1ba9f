"""Executing cases: interleaved rounds, the run's file, the machine around it."""
