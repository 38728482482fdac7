"""Conditions over files: the job's Program, without Kafka, Spark, service or Java (``replay``)."""
