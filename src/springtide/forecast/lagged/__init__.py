"""Models of lags: features of a past and a distance ahead, and what learns from them."""
