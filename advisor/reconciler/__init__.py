"""From advice to a cluster, safely: observe, diff, guard, act, report.

Belongs here: what would have to change, every rule that may refuse it, the manifests, and the one place
that writes through the cluster port. Must not be here: forecasts and what is worth doing (``planning``),
the Kubernetes client (``cluster``), storage of the ledger (``history``; records are returned as values),
sleeping (the time until the next look is returned).

=============  =================================================================
``actions``    the difference between advice and a NodePool, as changes
``pacing``     how far one change may go at once, and what was wanted lately
``guards``     small rules that allow a change or say why not
``budgets``    disruption budgets: sound, and carried whole
``cron``       schedules by the rules of the parser that Karpenter uses
``limits``     GPU limits in whole nodes, and what a limit does not do
``startup``    nodes that were asked for and are still coming
``warm``       sizes of capacity buffers, priorities of placeholders
``patches``    manifests and patches, as kubectl takes them
``reconcile``  the loop's body: one look, and what came of it
=============  =================================================================
"""
