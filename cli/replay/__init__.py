"""Conditions over recorded events (``replay``), in files or in whole Kafka topics.

A replay of files runs the job's Program without Kafka, Spark, service or Java; a replay of topics
runs the job.
"""
