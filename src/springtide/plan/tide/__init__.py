"""What `tide` learns while it runs, and what it makes of it."""
