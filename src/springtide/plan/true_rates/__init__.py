"""True processing rates, the capacity that rates call for, and scale-downs that wait: what DS2 is made of."""
