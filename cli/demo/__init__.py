"""The demo: flights, weather and chat messages through Kafka and Spark."""
