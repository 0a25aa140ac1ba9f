"""How a run becomes the page of its question: a module each, with a function `answer`."""
