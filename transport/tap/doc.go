// Package tap records the traffic of any [transport.Conn] as a capture file
// that tshark, tcpdump and everything else that reads pcap can open.
//
// # Model
//
// A [Conn] wraps another one and writes a record for every datagram sent or
// received through it:
//
//	file, err := os.Create("trace.pcap")
//	if err != nil {
//		return err
//	}
//	defer file.Close()
//	c, err := tap.New(udpConn, file, tap.Options{})
//	if err != nil {
//		return err
//	}
//	// Use c in place of udpConn, close it, then ask c.Err().
//
// An endpoint on it is made by dgrdma.New, a host of links by link.Config.Open. Neither was
// opened by a string, so the one that peers are told is put together: see the example.
//
// The file is classic pcap with nanoseconds, link type Ethernet, little-endian.
// Frames get the headers of the wire they would be on, made up from the
// addresses:
//
//	KindUDP    Ethernet, IPv4 or IPv6, UDP with correct checksums, and the two
//	           bytes in front of the frame, always zero; MAC addresses are
//	           02:00 and the last four bytes of the IP address
//	KindEther  Ethernet with Options.EtherType
//
// An endpoint at all addresses of its machine appears as the one that its peer asked; where
// none is known, as 0.0.0.0 or ::, whichever the peer's address needs. Lengths that do not fit an IP header are
// written as 0, which analysers take for segmentation offload.
//
// # Rules
//
// Buffers: as in package transport; what Recv returns are the views of the
// wrapped Conn, and nothing is kept. Concurrency: as in package transport;
// records of both directions are whole and in order of their times. A batch is
// one Write, made before the batch is sent, so that an answer cannot precede
// its question in the file; hence datagrams of a Send that fails are recorded
// as well. Errors: those of the writer never touch the traffic; the first one
// ends the recording and stays in [Conn.Err]. The writer belongs to the caller,
// who flushes and closes it after the Conn.
//
// A datagram that is sent gets the time before it is sent, one that is received the time
// when Recv returned it: those that waited together in the socket have the same, or nearly,
// whenever they came.
//
// # Limits
//
// Traffic waits for the writer: give it a buffered one if that matters. Frames
// that the wrapped Conn dropped are not seen.
package tap
