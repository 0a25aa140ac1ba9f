"""Tables read the plain way, by none of the engines under test: every manifest, every file, every row.

Slow and simple on purpose: this is what engines are checked against.
"""
