"""Applications that exist in the simulator only: what a trace is tried with when the user has described none."""
