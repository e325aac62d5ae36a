# EXPECT: a text that doubles ends inside the limit
# OUTCOME: exceeded memory
# CONTROL: silent: the limit on address space holds at every level
text = 'x'
while True: text += text
