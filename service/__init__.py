"""The control plane: streams and conditions over REST, kept in one compacted Kafka topic."""
