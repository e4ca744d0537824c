"""Workers: programs that have loaded an application, and call its functions when they are told to.

They reach the server by one WebSocket each; `protocol` says what is said on it. The dispatcher is a
runtime as the keeper of processes is one: an order goes to a worker that knows the function, under
a lease that the worker keeps alive. What a worker says after its lease is over counts for nothing.
"""
