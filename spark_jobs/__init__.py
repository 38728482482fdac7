"""The data pipeline on Spark Structured Streaming: Kafka to slots to Program to Kafka."""
