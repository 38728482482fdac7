"""The demo: flights and weather through Kafka and Spark."""
