"""The HTTP API: routes parse, call one service function and shape the answer.

Belongs here: routes, request and response schemas, dependencies, the table from errors to problem
responses, and the protocol of the service they call. Must not be here: decisions, queries, training.
"""
