"""Conditions over recorded events (``replay``): in files, or in whole topics of Kafka.

Over files it is the job's Program, without Kafka, Spark, service or Java; over topics the job.
"""
