"""What delete files say: positions, deletion vectors, equality keys."""
