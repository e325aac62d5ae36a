"""Records as bytes: frames, older versions, values held once, and the memory that decoded rows take."""
