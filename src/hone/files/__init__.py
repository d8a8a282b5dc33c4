"""Read and write files safely: locks, durable atomic writes, descriptor-relative opens."""
