"""How many replicas: what queueing theory says of servers that share a queue, and of queues behind one another."""
