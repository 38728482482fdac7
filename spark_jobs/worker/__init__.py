"""The workers' part of the job: packing records, and the stateful operator."""
