"""What the commands of `springtide forecast` do."""
