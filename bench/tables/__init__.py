"""The tables that are measured: generated, kept in a cache, and checked to be what their layouts claim."""
