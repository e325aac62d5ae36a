"""What rules said of runs: findings, their groups, and runs judged again."""
