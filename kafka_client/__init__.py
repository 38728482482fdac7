"""What the service, the job and the command line share of Kafka."""
