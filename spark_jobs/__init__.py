"""The data pipeline: Kafka to slots to Program to Kafka, on Spark Structured Streaming."""
