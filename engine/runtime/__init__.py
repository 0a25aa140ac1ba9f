"""Work counters, and running work on threads."""
