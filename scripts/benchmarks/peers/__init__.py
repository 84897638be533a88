"""Other schedulers and queues, each driven as its own documentation says."""
