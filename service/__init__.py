"""The control plane: streams and conditions over REST, kept in a compacted Kafka topic."""
