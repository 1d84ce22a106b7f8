"""From a changed membership to a changed table: who is asked, whether he is believed, and what goes at once.

``ownership`` asks the cluster's slot policy, ``slot_answers`` judges what it answers, and ``pacing`` spreads a plan
over decisions.
"""
