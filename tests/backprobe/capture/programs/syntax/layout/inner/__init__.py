again = __package__
