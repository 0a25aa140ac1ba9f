"""The engines under test, behind one Protocol."""
