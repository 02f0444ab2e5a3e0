"""What the policies that act on hosts share: judging hosts, relocating what is on them, resizing operators, saying why."""
