// Package iwarp reads what passes on connections of iWARP, RDMA over TCP, in a capture: the frames of set-up (MPA), each FPDU with the
// message that it is of, and what cannot be read.
//
//	d := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error { ... })
//	for each record of the capture {
//		d.Add(number, &record)
//	}
//	d.End()
//
// A [Decoder] is a passive machine: it reads no clock and starts no goroutine, and it speaks to nobody. [Tap] puts it beside
// whoever reads the same records.
//
// # Which connections are iWARP's
//
// Those of the ports that are named; without any, those whose first bytes are the key of an MPA request or reply. Of a
// connection whose beginning is not in the capture, frames are looked for by their CRC.
//
// # What cannot be read
//
// A frame of which something is missing is an event as far as it goes, and the next one begins where its length says.
// Where the length of a frame itself is missing, or is not one, the next frame is looked for: it is found where a header
// of DDP and RDMAP makes sense and the CRC behind it is right, which is a proof. Without CRC there is none, and the direction is given up. Each of that is an event.
// Behind such a hole nobody knows what was asked for: an answer goes with the request that it fits, and of others nothing is said.
//
// # Bounds
//
// Package capture/tcp has bounds for connections and for what waits there. Here at most [MostHeld] bytes wait, of all
// connections, of frames that are not whole. Where more would, connections give way that have shown neither a whole set-up nor a
// frame, who is silent for longest first, and with them what is remembered for [Options.Passed]: at most [MostEarly] segments and
// [MostEarlyBytes] bytes of a connection, the latest. Then the direction that needs more is given up. To look for a frame costs at most
// [MostSearched] bytes and [MostChecked] bytes of checksums; then the direction is given up. At most [MostRequests] requests of a direction are
// followed to their answers.
//
// Rules: an Event is valid during the call. A Decoder belongs to one goroutine.
package iwarp
