"""Wijayarathne and Reddy, Providing QoS guarantees for disk I/O: tables, verdicts, figures of its studies."""
