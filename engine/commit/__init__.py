"""How a change becomes visible: prepare (files, once), stage (a snapshot for this base), commit (compare and swap)."""
