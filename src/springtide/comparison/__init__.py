"""Many policies on many traces, run the same way: what each costs, how late it is, and who is beaten by whom."""
