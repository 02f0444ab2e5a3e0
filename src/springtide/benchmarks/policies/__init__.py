"""How long policies take to decide."""
