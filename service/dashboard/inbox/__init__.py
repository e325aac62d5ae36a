"""The inbox: findings of all runs by group, and what a team does about them."""
