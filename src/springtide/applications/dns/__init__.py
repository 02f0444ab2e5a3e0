"""DNS traffic, searched for tunnels: the second application of section V-G of PSPS.

`application` is the wiring; `feed` makes the log lines, `operators` are the functions of the operators, `names` is what is
computed of a name, and `answer` computes the results once more, plainly.
"""
