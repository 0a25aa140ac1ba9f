"""What counted requests and bytes would cost on an object store, in seconds and in money. Pure."""
