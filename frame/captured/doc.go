// Package captured finds DG/RDMA frames in captures. It is for tools and tests.
//
// A [Reader] goes through a capture, a file or an interface, and yields the frames
// with what the capture knows about them:
//
//	for p, err := range captured.ReadFile("trace.pcap", captured.Options{}) {
//		if err != nil {
//			return err // a *capture.Error: at which record the file is damaged
//		}
//		f, err := frame.Parse(p.Data)
//		if err != nil && !p.Cut() {
//			fmt.Println(p.Record, err)
//			continue
//		}
//		fmt.Println(p.Time, p.Src, p.Dst, f)
//	}
//
// On Ethernet the type tells a frame. UDP has no fixed port: without [Options].Ports
// every datagram is taken that looks like a frame, which means that it parses, its
// ids are not 0, its unused fields hold what every known sender puts there, and
// the two bytes before it are 0 or repeat the destination id.
//
// Sealed frames and the handshakes for their keys are found as well, by the same bytes before them, ids, flags and
// length: [Packet.Seal]. Their ids are all that can be read of them.
//
// A host with segmentation or receive offload captures many datagrams of UDP as
// one. They are taken apart again, see package capture. Such frames are between the
// same endpoints, or one of the two has several ids at its address and nothing pads
// any frame.
//
// Frames cut by a snap length are delivered as well and say so: Packet.Cut.
// Parse refuses them; [Packet.Header] and [Packet.Messages] give what is there.
//
// # Rules
//
// Buffers: a Packet and its Data are valid until the next call of Next. Concurrency: a
// Reader belongs to one goroutine at a time. Memory does not grow with the capture.
package captured
