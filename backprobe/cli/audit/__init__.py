"""`backprobe audit`: many programs judged by one policy, on the service or here."""
