"""Cases, and what was recorded of them: plain values that runs write and reports read."""
