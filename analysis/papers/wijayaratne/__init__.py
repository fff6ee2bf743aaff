"""Wijayarathne and Reddy, Providing QoS guarantees for disk I/O: tables, claims, figures of its studies."""
