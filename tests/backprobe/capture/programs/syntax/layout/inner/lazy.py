value = "lazy"
