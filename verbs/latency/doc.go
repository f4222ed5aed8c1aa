// Package latency measures how long each operation of package verbs takes, between a client and a server that serves any number of clients.
//
//	c, err := latency.Dial(ctx, host, "tcp:10.0.0.2:7471", latency.Read, 64, nil)
//	err = c.Start() // one operation
//	err = c.Wait(ctx)
//	err = c.Close(ctx)
//
// and at the other side
//
//	server := &latency.Server{}
//	request, err := listener.Accept(ctx)
//	s, err := server.Accept(ctx, host, request)
//	err = s.Run(ctx)
//
// # What is measured
//
// It is what perftest's programs measure, but for two things. Send and Write go there and back, and half of the time is one way: [Op.OneWay]. An empty
// Send behind each Write tells of it, in the same batch: ib_write_lat looks at the memory instead until it changes, which in Go is a
// data race. Read, FetchAdd and CompareSwap are one operation each, until its answer is there. Flush is a Write and the Flush behind it,
// because a Flush of what nobody has written has nothing to do.
//
// # Agreement
//
// Nothing on the wire tells what operations a peer knows, so the client says in its private data what it is going to do, in a record with
// a version, and the server answers with one or rejects with words, after a record where the operations are too large:
//
//	request: "DGLT", version, operation, 2 zeros, size (4), key of the client's memory (16)
//	reply:   "DGLT", version, operation, 1 if a Flush is persistent, 1 zero, key of the server's memory (16)
//	too large: "DGLT", version, operation, 2 zeros, words
//
// all big-endian; keys are those of [verbs.Key].
package latency
