// Package dissect finds DG/RDMA frames in captures, and makes them a layer of
// gopacket. It is for tools and tests; nothing here sends or receives.
//
// # Captures
//
// A [Reader] goes through a pcap or pcapng file, compressed by gzip or not, and
// yields the DG/RDMA frames with what the capture knows about them:
//
//	for p, err := range dissect.ReadFile("trace.pcap", dissect.Options{}) {
//		if err != nil {
//			return err // an *Error: at which record the file is damaged
//		}
//		f, err := frame.Parse(p.Data)
//		if err != nil && !p.Cut() {
//			fmt.Println(p.Record, err)
//			continue
//		}
//		fmt.Println(p.Time, p.Src, p.Dst, f)
//	}
//
// It understands Ethernet, VLAN tags, both Linux cooked formats, BSD loopback
// and raw IP; IPv4 with options, IPv6 with extension headers. On Ethernet the
// type tells a frame. UDP has no fixed port: without [Options].Ports every
// datagram is taken that looks like a frame, which means that it parses, its
// ids are not 0, its unused fields hold what every known sender puts there, and
// the two bytes before it are 0 or repeat the destination id.
//
// A host with segmentation or receive offload captures many datagrams of UDP as
// one. They are taken apart again, and each frame is delivered as if it had come
// alone, with the time of all: [Packet.Segment]. The checksum and the lengths in
// the headers before them are those of the whole, and not on any wire. Such
// frames are between the same endpoints, or one of the two has several ids at its
// address and nothing pads any frame.
//
// What is no file, such as an interface, is a [Source]: [NewSourceReader].
//
// Frames cut by a snap length are delivered as well and say so: [Packet.Cut].
// Parse refuses them; [Packet.Header] and [Packet.Messages] give what is there.
//
// # gopacket
//
// [DGRDMA] is a layer that decodes in place, through frame.Parse, and
// serializes. Over UDP a [Prefix] comes first. gopacket keeps its layer types
// in global tables, so nothing happens before [Register] or [RegisterUDP] is
// called; the layers work without it in a DecodingLayerParser that starts with
// them:
//
//	if err := dissect.Register(dissect.DefaultEtherType); err != nil {
//		return err
//	}
//	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
//	if d, ok := p.Layer(dissect.LayerTypeDGRDMA).(*dissect.DGRDMA); ok {
//		fmt.Println(d.Frame)
//	}
//
// # Rules
//
// Buffers: a Packet and its Data are valid until the next call of Next; a layer
// is a view of the bytes it was decoded from. Memory does not grow with the
// file. Concurrency: a Reader belongs to one goroutine at a time. Register
// writes tables that gopacket reads without a lock: call it before decoding
// starts. Errors: a damaged file is read as far as it goes, then Next returns an
// *[Error] and goes on returning it.
//
// Limits: records of up to 256 KiB, as in libpcap. IP fragments are not put
// together: a first fragment is a cut frame, later ones are only counted. A
// cooked capture does not record the destination of an Ethernet frame.
package dissect
