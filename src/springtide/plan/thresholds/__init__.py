"""What the two threshold policies share: judging hosts, relocating what is on them, resizing operators, saying why."""
