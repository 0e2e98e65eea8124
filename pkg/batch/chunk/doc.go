package chunk
