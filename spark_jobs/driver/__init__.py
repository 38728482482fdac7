"""Driver side of the job: topics, offsets, checkpoint, reports and session."""
