"""What Springtide costs and brings on live Spark, measured on this machine."""
