"""What policies share that give every operator so many replicas as its rows need, and the application so many hosts."""
