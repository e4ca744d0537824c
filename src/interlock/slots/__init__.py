"""Where: which slots there are on which nodes. Who is granted them is admission's to say."""
