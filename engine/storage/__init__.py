"""Storage by location: whole files, byte ranges and listings."""
