"""The loops over bytes, in plain Python that Numba can compile, and what compiles them."""
