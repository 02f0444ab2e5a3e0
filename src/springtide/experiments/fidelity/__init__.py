"""How true the simulator is: calibrated from a short live run, then beside another live one."""
