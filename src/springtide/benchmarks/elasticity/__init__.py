"""What the control plane achieves on live Spark: hosts, late rows, predicted latency, and fixed cost saved."""
