"""Compiled kernels: when they are loaded or compiled, and where their machine code is kept."""
