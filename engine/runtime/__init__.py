"""How work is counted and spread over threads."""
