"""Policies: one small class each, behind the protocol of :mod:`advisor.simulator.policies.protocol`.

Belongs here: decisions on a simulated cluster. Must not be here: booking and billing, which the cluster does
for all alike.
"""
