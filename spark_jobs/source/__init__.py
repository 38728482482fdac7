"""The source of the query: it reads Kafka's records and packs them in the tasks."""
