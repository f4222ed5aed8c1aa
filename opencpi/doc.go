// Package opencpi joins links to the ports of OpenCPI's hosts and cards, which know
// nothing of dialing. The two sides of a connection exchange descriptors out of band,
// as JSON or in OpenCPI's binary form, the consumer's first:
//
//	in, offer, err := opencpi.Offer(host, conn, nil)   // receives; offer goes to the producer
//	err = opencpi.Connect(in, answer)                  // which answers with its own
//
//	out, answer, err := opencpi.Attach(host, conn, offer, nil) // sends; answer goes to the consumer
//
// conn is a connection of the host's endpoint to that peer, with its profile; package
// link has the rules of links to peers of other kinds.
//
// [ParseDescriptor] and [Descriptor.AppendBinary] are the binary form; package json
// writes and reads the other. [Descriptor.Validate] says whether a connection can be
// made with a descriptor. Every error about one is [ErrDescriptor].
package opencpi
