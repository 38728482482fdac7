"""Worker side of the job: record packing and the stateful operator."""
