"""Learning when a host should scale: a lookup table over its utilisation, and the lessons that change it."""
