"""What people see: pages as typed contexts, charts as pure functions, templates, static files.

Belongs here: one frozen context a page, pure functions from domain values to contexts and charts,
templates, the routes that serve them, and the protocol through which data arrives.
Must not be here: stores, clusters, models, the cycle, decisions.
"""
