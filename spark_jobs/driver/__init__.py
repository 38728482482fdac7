"""The driver's part of the job: topics, offsets, checkpoint, reports, session."""
