"""The local stack: embedded broker, service and job as processes."""
