"""Where the bytes are: whole files, byte ranges and listings, by location."""
