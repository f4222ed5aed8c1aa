// Package mmsg moves batches of datagrams through one socket with sendmmsg and
// recvmmsg.
//
// A [Socket] is a descriptor that the Go runtime does not watch: a descriptor
// in its poller wakes an idle thread for every datagram, even when nobody waits
// there, which costs more than all else between the kernel and the engine. So
// whoever receives waits in ppoll, on its own thread, and Close wakes it through
// an eventfd.
//
//	s, err := mmsg.New(fd)
//	in := mmsg.NewReceiver(64, 2048, 0)
//	for {
//		n, err := in.Receive(s, mmsg.Forever)
//		if err != nil {
//			return err
//		}
//		for i := range n {
//			use(in.Data(i))
//		}
//	}
//
// All memory is made once: arrays of headers live in the Receiver and in the
// [Batch], and are filled by index.
package mmsg
