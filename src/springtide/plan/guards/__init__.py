"""Guards: policies around a policy, such as `Bounded(Cooldown(policy))`. One file per guard.

Rules: a guard's memory contains the memory of the policy inside it; a change is judged against `view.requested`;
whatever a guard changes or vetoes leaves a `WhyNot` of its own in the decision; every plan a guard hands on is valid
if the plan it was given is. Where a decision is changed, its reason remains the policy's own; what was promised of its plan no
longer holds.
"""
