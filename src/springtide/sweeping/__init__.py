"""Many runs that know nothing of one another: one after the other in this process, or all at once as a Spark job."""
