"""ARIMA: the process, how its coefficients are found, and how its order is."""
